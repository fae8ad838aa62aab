"""`shotproof detect`: which words hold of which item, and what a file of words amounts to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shotproof.cli.console import print_json, print_table
from shotproof.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from shotproof.attributes.attributes import Attributes
    from shotproof.attributes.detector import Detector
    from shotproof.catalog.catalog import Catalog

SHOWN_WORDS = 40
SHOWN_ITEMS = 5
FLAGS = {
    "file": "--from",
    "model": "--model",
    "url": "--url",
    "hub": "--hub",
    "tagger": "--tagger",
    "batch_size": "--batch-size",
    "workers": "--workers",
    "device": "--device",
}


def detect(
    source: Annotated[
        Path, typer.Argument(metavar="CATALOG", help="catalog.parquet; or attributes.parquet, to describe it.")
    ],
    detector: Annotated[
        list[str] | None,
        typer.Option(help="photometric, table, captions, vlm, endpoint, or a registered one; may be repeated."),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The attributes file to write.")] = None,
    split: Annotated[str | None, typer.Option(help="Only the items of this split.")] = None,
    from_: Annotated[Path | None, typer.Option("--from", help="table, captions: the file to read.")] = None,
    model: Annotated[str | None, typer.Option(help="vlm, endpoint: the model's name, or its folder (vlm).")] = None,
    url: Annotated[str | None, typer.Option(help="endpoint: the server's address.")] = None,
    hub: Annotated[bool, typer.Option("--hub", help="vlm: download the model if it is not here.")] = False,
    tagger: Annotated[str | None, typer.Option(help="captions, vlm, endpoint: hanta or spacy.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="vlm: images at a time.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="photometric: processes (one a core); the words are the same for any.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="vlm: cpu, cuda, ...")] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", "-O", help="KEY=VALUE, any further option; may be repeated.")
    ] = None,
    stats: Annotated[bool, typer.Option("--stats", help="Print how many words there are, and the words.")] = False,
    catalog: Annotated[
        Path | None, typer.Option(help="The catalog of an attributes file, for its --stats and --split.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="Another attributes file: print the detection accuracy both ways.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Find the words that hold of each item; several detectors give the union of their words.

    Example: shotproof detect catalog.parquet --detector photometric --detector table -o attributes.parquet --stats

    Of a file that exists: shotproof detect attributes.parquet --catalog catalog.parquet --stats --against other.parquet
    """
    from shotproof.attributes.attributes import Attributes
    from shotproof.attributes.detector import detect as detect_words
    from shotproof.catalog.catalog import Catalog
    from shotproof.specs import parse_options

    flagged = {
        "file": from_,
        "model": model,
        "url": url,
        "hub": hub or None,
        "tagger": tagger,
        "batch_size": batch_size,
        "workers": workers,
        "device": device,
    }
    options = {name: value for name, value in flagged.items() if value is not None} | parse_options(option or [])
    other = Attributes.read(against) if against is not None else None
    items: Catalog | None
    if _is_attributes(source):
        if detector or output or options:
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
        found = detect_words(items, *_detectors(detector or [], options, file))
        if split is not None:
            found = Attributes(found.table, {**found.meta, "split": split})
        found.write(file)
    _report(file, found, items if stats else None, (against, other) if against and other else None, json)


def _detectors(names: Sequence[str], options: dict[str, Any], output: Path) -> list[Detector]:
    """The detectors of these names, each made with those of the options that are its own."""
    from shotproof.attributes.detector import detectors

    if not names:
        raise InputError(f"choose one or more with --detector: {', '.join(detectors.names())}")
    if len(set(names)) < len(names):
        raise InputError(f"--detector: each one once, not {', '.join(names)}")
    taken = {name: _parameters(detectors.factory(name)) for name in names}
    own: dict[str, dict[str, Any]] = {name: {} for name in names}
    for key, value in options.items():
        takers = [name for name in names if key in taken[name]]
        if not takers:
            known = sorted({parameter for parameters in taken.values() for parameter in parameters})
            raise InputError(f"{_flag(key)} is no option of {' or '.join(names)}{did_you_mean(key, known)}")
        if len(takers) > 1:
            raise InputError(
                f"{_flag(key)} may be meant for {' or '.join(takers)}: detect with each alone, "
                "then unite the files by --detector table --from FILE"
            )
        own[takers[0]][key] = value
    for name in names:
        defaults = {"workers": os.cpu_count() or 1, "resume": output.with_suffix(f".{name}.captions.jsonl")}
        own[name] = {key: value for key, value in defaults.items() if key in taken[name]} | own[name]
        lacking = [key for key, needed in taken[name].items() if needed and key not in own[name]]
        if lacking:
            raise InputError(f"detector '{name}' needs {' and '.join(map(_flag, lacking))}")
    return [detectors.make(name, **own[name]) for name in names]


def _parameters(factory: Any) -> dict[str, bool]:
    """The options that a detector takes, and whether it needs them."""
    import inspect

    parameters = inspect.signature(factory).parameters.values()
    return {p.name: p.default is p.empty for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}


def _flag(key: str) -> str:
    return FLAGS.get(key, f"--option {key}=...")


def _output(output: Path | None, source: Path) -> Path:
    if output is None:
        raise InputError("name the file to write: --output attributes.parquet")
    if output.exists() and source.exists() and output.samefile(source):
        raise InputError(f"--output {output} is the catalog itself")
    return output


def _is_attributes(path: Path) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from shotproof.tables import read_meta

    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError):
        return False  # whoever reads it as a catalog says what is wrong with it
    by_columns = "attributes" in schema.names and "label" not in schema.names
    return bool(read_meta(schema).get("kind") == "attributes" or by_columns)


def _items(catalog: Catalog, split: str | None) -> Catalog:
    return catalog if split is None else catalog.in_split(split)


def _only(attributes: Attributes, catalog: Catalog | None) -> Attributes:
    """The words of the catalog's items alone."""
    import pyarrow.compute as pc

    if catalog is None:
        return attributes
    held = pc.is_in(attributes.table.column("item"), value_set=catalog.items)
    return type(attributes)(attributes.table.filter(held), attributes.meta)


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
    typer.echo(f"{file}: {len(words):,} items, {distinct:,} words; digest {found.digest}")
    if unknown:
        named = ", ".join(unknown[:SHOWN_ITEMS]) + (", ..." if len(unknown) > SHOWN_ITEMS else "")
        typer.echo(f"  nothing is known of {len(unknown):,} of them: {named}")
    if "statistics" in document:
        _print_statistics(document["statistics"])
    if "against" in document:
        _print_accuracies(document["against"])


def _print_statistics(statistics: dict[str, Any]) -> None:
    words = statistics["words"]
    typer.echo(
        f"  {statistics['distinct']:,} distinct attributes; {statistics['per_class']:.2f} a class in the mean over "
        f"{statistics['classes']:,} classes, {statistics['per_item']:.2f} an item\n"
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
            f"{row['accuracy']:.2%}",
            *(f"{row[count]:,}" for count in ("items", "undefined", "unpaired")),
        ]
        for row in accuracies
    ]
    typer.echo("\n  detection accuracy; undefined: no words in the reference; unpaired: known to one side only\n")
    print_table("", ["detector", "reference", "accuracy", "items", "undefined", "unpaired"], rows)
