"""`shotproof detect`: attributes of items, their statistics and their agreement."""

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

MAX_WORDS = 40
MAX_ITEMS = 5


def detect(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES", help="A catalog; or attributes and their catalog, to describe them."),
    ],
    detector: Annotated[
        list[str] | None,
        typer.Option(
            help="photometric, \"captions(file='captions.csv')\", vlm:MODEL, ...; repeatable. shotproof show detectors "
            "lists all."
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Attributes file to write.")] = None,
    split: Split = None,
    stats: Annotated[bool, typer.Option("--stats", help="Print the attributes and how frequent they are.")] = False,
    against: Annotated[
        Path | None, typer.Option(help="Other attributes: print the detection accuracy in both directions.")
    ] = None,
    as_json: AsJson = False,
    batch_size: BatchSize = None,
) -> None:
    """Detect the attributes of each item; the results of several detectors are combined.

    Example: shotproof detect catalog.parquet --detector photometric --detector table -o attributes.parquet --stats

    For an existing file: shotproof detect attributes.parquet catalog.parquet --stats --against other.parquet
    """
    from shotproof.attributes.detector import detect as detect_words
    from shotproof.attributes.detector import detectors
    from shotproof.core.runtime.runtime import runtime

    sorted_files = sort_files(files, ("catalog", "attributes"))
    other = read_one([against] if against else [], "attributes")
    items = read_one(sorted_files["catalog"], "catalog")
    items = items if split is None or items is None else items.in_split(split)
    if sorted_files["attributes"]:
        file = sorted_files["attributes"][0]
        if detector or output:
            raise InputError(f"{file} holds attributes: --detector and --output need a catalog instead")
        if items is None and (stats or split is not None):
            raise InputError("--stats and --split need the catalog of the attributes, catalog.parquet")
        attributes = _keep_items(read_one([file], "attributes"), items)
    else:
        file = _check_output(output, sorted_files["catalog"][0])
        if not detector:
            raise InputError(f"no detector given: choose one or more with --detector: {', '.join(detectors.names())}")
        attributes = detect_words(items, *detector, runtime=runtime(batch_size=batch_size))
        attributes = replace(attributes, record=replace(attributes.record, split=split))
        attributes.write(file)
    _report(file, attributes, items if stats else None, (against, other) if against and other else None, as_json)


def _check_output(output: Path | None, source: Path) -> Path:
    """Return the output file if it can be written and is not the source."""
    from shotproof.core.storage.places import absolute
    from shotproof.core.tables import check_output

    if output is None:
        raise InputError("no output file given: use --output attributes.parquet")
    check_output(output)
    if absolute(output) == absolute(source):
        raise InputError(f"--output {output} would overwrite the catalog: choose another file")
    return output


def _keep_items(attributes: Attributes, catalog: Catalog | None) -> Attributes:
    """Keep only the attributes of the catalog's items."""
    import pyarrow.compute as pc

    if catalog is None:
        return attributes
    in_catalog = pc.is_in(attributes.table.column("item"), value_set=catalog.table.column("item"))
    return replace(attributes, table=attributes.table.filter(in_catalog))


def _report(
    file: Path, attributes: Attributes, catalog: Catalog | None, against: tuple[Path, Attributes] | None, json: bool
) -> None:
    """Print the size of an attributes file, its statistics and its detection accuracy."""
    from shotproof.attributes.statistics import attribute_statistics, detection_accuracy

    words = attributes.to_words()
    unknown = [item for item, item_words in words.items() if item_words is None]
    document: dict[str, Any] = {"file": str(file), "digest": attributes.digest, "items": len(words), "unknown": unknown}
    if catalog is not None:
        statistics = attribute_statistics(attributes, catalog)
        document["statistics"] = vars(statistics) | {"words": statistics.words.to_pylist()}
    if against is not None:
        path, other = against
        pairs = [(file, attributes, path, other), (path, other, file, attributes)]
        document["against"] = [
            {"query": str(query), "reference": str(reference), **vars(detection_accuracy(query_words, reference_words))}
            for query, query_words, reference, reference_words in pairs
        ]
    if json:
        print_json(document)
        return
    distinct = len({word for item_words in words.values() for word in item_words or []})
    say(f"{file}: {counted(len(words), 'item')}, {counted(distinct, 'word')}; digest {attributes.digest}")
    if unknown:
        listed = ", ".join(unknown[:MAX_ITEMS]) + (", ..." if len(unknown) > MAX_ITEMS else "")
        say(f"  no attributes are known for {counted(len(unknown), 'item')}: {listed}")
    if "statistics" in document:
        _print_statistics(document["statistics"])
    if "against" in document:
        _print_accuracies(document["against"])


def _print_statistics(statistics: dict[str, Any]) -> None:
    """Print the number of attributes, and how frequent the first ones are."""
    words = statistics["words"]
    say(
        f"  {counted(statistics['distinct'], 'distinct attribute')}; on average {statistics['per_class']:.2f} per "
        f"class ({counted(statistics['classes'], 'class', 'classes')}) and {statistics['per_item']:.2f} per item",
        "",
    )
    rows = [
        [row["attribute"], f"{row['items']:,}", f"{row['share']:.1%}", f"{row['classes']:,}"]
        for row in words[:MAX_WORDS]
    ]
    if len(words) > MAX_WORDS:
        rows.append([f"... and {len(words) - MAX_WORDS:,} more (--json)", "", "", ""])
    print_table("", ["attribute", "items", "share", "classes"], rows)


def _print_accuracies(accuracies: Sequence[dict[str, Any]]) -> None:
    """Print detection accuracies, one row per direction."""
    rows = [
        [
            row["query"],
            row["reference"],
            f"{row['accuracy']:.2f}%",
            *(f"{row[count]:,}" for count in ("items", "undefined", "unpaired")),
        ]
        for row in accuracies
    ]
    say("", "  detection accuracy; undefined: the reference has no attributes; unpaired: known on one side only", "")
    print_table("", ["detector", "reference", "accuracy", "items", "undefined", "unpaired"], rows)
