"""`shotproof detect`: which words hold of which item, and what a file of words amounts to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shotproof.cli.console import print_json, print_table, say
from shotproof.cli.runtime_options import BatchSize, Cache, Device, EngineName, Progress, Workers, make_runtime
from shotproof.core.errors import InputError
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from shotproof.attributes.attributes import Attributes
    from shotproof.catalog.catalog import Catalog

SHOWN_WORDS = 40
SHOWN_ITEMS = 5


def detect(
    source: Annotated[
        Path, typer.Argument(metavar="CATALOG", help="catalog.parquet; or attributes.parquet, to describe it.")
    ],
    detector: Annotated[
        list[str] | None,
        typer.Option(
            help="E.g. photometric, \"captions(file='captions.csv')\", vlm:MODEL; may be repeated. shotproof list "
            "detectors has all."
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The attributes file to write.")] = None,
    split: Annotated[str | None, typer.Option(help="Only the items of this split.")] = None,
    stats: Annotated[bool, typer.Option("--stats", help="Print how many words there are, and the words.")] = False,
    catalog: Annotated[
        Path | None, typer.Option(help="The catalog of an attributes file, for its --stats and --split.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="Another attributes file: print the detection accuracy both ways.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    batch_size: BatchSize = None,
    workers: Workers = None,
    device: Device = None,
    cache: Cache = None,
    progress: Progress = None,
    engine: EngineName = None,
) -> None:
    """Find the words that hold of each item; several detectors give the union of their words.

    Example: shotproof detect catalog.parquet --detector photometric --detector table -o attributes.parquet --stats

    Of a file that exists: shotproof detect attributes.parquet --catalog catalog.parquet --stats --against other.parquet
    """
    from shotproof.attributes.attributes import Attributes
    from shotproof.attributes.detector import detect as detect_words
    from shotproof.attributes.detector import detectors
    from shotproof.catalog.catalog import Catalog

    other = Attributes.read(against) if against is not None else None
    items: Catalog | None
    if _is_attributes(source):
        if detector or output:
            raise InputError(f"{source} is an attributes file: detecting needs a catalog, --stats and --against do not")
        if catalog is None and (stats or split is not None):
            raise InputError("--stats and --split of an attributes file need its catalog: --catalog catalog.parquet")
        items = _items(Catalog.read(catalog), split) if catalog is not None else None
        file, found = source, _only(Attributes.read(source), items)
    else:
        if catalog is not None:
            raise InputError(f"--catalog goes with an attributes file, and {source} is none")
        items = _items(Catalog.read(source), split)
        file = _output(output, source)
        if not detector:
            raise InputError(f"choose one or more with --detector: {', '.join(detectors.names())}")
        runtime = make_runtime(workers, device, cache, progress, engine, batch_size=batch_size)
        found = detect_words(items, *detector, runtime=runtime)
        found = replace(found, record=replace(found.record, split=split))
        found.write(file)
    _report(file, found, items if stats else None, (against, other) if against and other else None, json)


def _output(output: Path | None, source: Path) -> Path:
    from shotproof.core.storage.places import absolute
    from shotproof.core.tables import check_output

    if output is None:
        raise InputError("name the file to write: --output attributes.parquet")
    check_output(output)
    if absolute(output) == absolute(source):
        raise InputError(f"--output {output} is the catalog itself")
    return output


def _is_attributes(path: Path) -> bool:
    from shotproof.pipeline.read import kind_of

    try:
        return kind_of(path) == "attributes"
    except InputError:
        return False  # whoever reads it as a catalog says what is wrong with it


def _items(catalog: Catalog, split: str | None) -> Catalog:
    return catalog if split is None else catalog.in_split(split)


def _only(attributes: Attributes, catalog: Catalog | None) -> Attributes:
    """The words of the catalog's items alone."""
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
