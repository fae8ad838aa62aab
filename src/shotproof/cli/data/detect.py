"""`shotproof detect`: which words hold of which item, and what a file of words amounts to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shotproof.cli.arguments import AsJson, BatchSize, Split, read_one, sort_files
from shotproof.cli.console import print_json, print_table, say
from shotproof.core.errors import InputError
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from shotproof.attributes.attributes import Attributes
    from shotproof.catalog.catalog import Catalog

SHOWN_WORDS = 40
SHOWN_ITEMS = 5


def detect(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES", help="A catalog; or attributes, to describe them, and their catalog."),
    ],
    detector: Annotated[
        list[str] | None,
        typer.Option(
            help="E.g. photometric, \"captions(file='captions.csv')\", vlm:MODEL; may be repeated. shotproof show "
            "detectors has all."
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The attributes file to write.")] = None,
    split: Split = None,
    stats: Annotated[bool, typer.Option("--stats", help="Print how many words there are, and the words.")] = False,
    against: Annotated[
        Path | None, typer.Option(help="Other attributes: print the detection accuracy both ways.")
    ] = None,
    as_json: AsJson = False,
    batch_size: BatchSize = None,
) -> None:
    """Find the words that hold of each item; several detectors give the union of their words.

    Example: shotproof detect catalog.parquet --detector photometric --detector table -o attributes.parquet --stats

    Of a file that exists: shotproof detect attributes.parquet catalog.parquet --stats --against other.parquet
    """
    from shotproof.attributes.detector import detect as detect_words
    from shotproof.attributes.detector import detectors
    from shotproof.core.runtime.runtime import runtime

    given = sort_files(files, ("catalog", "attributes"))
    other = read_one([against] if against else [], "attributes")
    items = read_one(given["catalog"], "catalog")
    items = items if split is None or items is None else items.in_split(split)
    if given["attributes"]:
        file = given["attributes"][0]
        if detector or output:
            raise InputError(f"{file} holds attributes: detecting needs a catalog alone, --stats and --against do not")
        if items is None and (stats or split is not None):
            raise InputError("--stats and --split of attributes need their catalog, catalog.parquet")
        words = _only(read_one([file], "attributes"), items)
    else:
        file = _output(output, given["catalog"][0])
        if not detector:
            raise InputError(f"choose one or more with --detector: {', '.join(detectors.names())}")
        words = detect_words(items, *detector, runtime=runtime(batch_size=batch_size))
        words = replace(words, record=replace(words.record, split=split))
        words.write(file)
    _report(file, words, items if stats else None, (against, other) if against and other else None, as_json)


def _output(output: Path | None, source: Path) -> Path:
    from shotproof.core.storage.places import absolute
    from shotproof.core.tables import check_output

    if output is None:
        raise InputError("name the file to write: --output attributes.parquet")
    check_output(output)
    if absolute(output) == absolute(source):
        raise InputError(f"--output {output} is the catalog itself")
    return output


def _only(attributes: Attributes, catalog: Catalog | None) -> Attributes:
    """Return the words of the catalog's items alone."""
    import pyarrow.compute as pc

    if catalog is None:
        return attributes
    held = pc.is_in(attributes.table.column("item"), value_set=catalog.table.column("item"))
    return replace(attributes, table=attributes.table.filter(held))


def _report(
    file: Path, found: Attributes, catalog: Catalog | None, against: tuple[Path, Attributes] | None, json: bool
) -> None:
    from shotproof.attributes.statistics import attribute_statistics, detection_accuracy

    words = found.to_words()
    unknown = [item for item, held in words.items() if held is None]
    document: dict[str, Any] = {"file": str(file), "digest": found.digest, "items": len(words), "unknown": unknown}
    if catalog is not None:
        statistics = attribute_statistics(found, catalog)
        document["statistics"] = vars(statistics) | {"words": statistics.words.to_pylist()}
    if against is not None:
        path, other = against
        pairs = [(file, found, path, other), (path, other, file, found)]
        document["against"] = [
            {"query": str(query), "reference": str(reference), **vars(detection_accuracy(ours, theirs))}
            for query, ours, reference, theirs in pairs
        ]
    if json:
        print_json(document)
        return
    distinct = len({word for held in words.values() for word in held or []})
    say(f"{file}: {counted(len(words), 'item')}, {counted(distinct, 'word')}; digest {found.digest}")
    if unknown:
        named = ", ".join(unknown[:SHOWN_ITEMS]) + (", ..." if len(unknown) > SHOWN_ITEMS else "")
        say(f"  nothing is known of {len(unknown):,} of them: {named}")
    if "statistics" in document:
        _print_statistics(document["statistics"])
    if "against" in document:
        _print_accuracies(document["against"])


def _print_statistics(statistics: dict[str, Any]) -> None:
    words = statistics["words"]
    say(
        f"  {counted(statistics['distinct'], 'distinct attribute')}; {statistics['per_class']:.2f} per class in the "
        f"mean over {counted(statistics['classes'], 'class', 'classes')}, {statistics['per_item']:.2f} per item",
        "",
    )
    rows = [
        [row["attribute"], f"{row['items']:,}", f"{row['share']:.1%}", f"{row['classes']:,}"]
        for row in words[:SHOWN_WORDS]
    ]
    if len(words) > SHOWN_WORDS:
        rows.append([f"... and {len(words) - SHOWN_WORDS:,} more (--json)", "", "", ""])
    print_table("", ["attribute", "items", "share", "classes"], rows)


def _print_accuracies(accuracies: Sequence[dict[str, Any]]) -> None:
    rows = [
        [
            row["query"],
            row["reference"],
            f"{row['accuracy']:.2f}%",
            *(f"{row[count]:,}" for count in ("items", "undefined", "unpaired")),
        ]
        for row in accuracies
    ]
    say("", "  detection accuracy; undefined: no words in the reference; unpaired: known to one side only", "")
    print_table("", ["detector", "reference", "accuracy", "items", "undefined", "unpaired"], rows)
