"""`shotproof encode`: features of the items of a catalog."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shotproof.cli.arguments import BatchSize, SkipBad, Split
from shotproof.cli.console import say
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shotproof.catalog.catalog import Catalog
    from shotproof.features.features import Features

ALL = "all"  # stages


def encode(
    catalog: Annotated[Path, typer.Argument(help="Catalog, catalog.parquet.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Features file to write; with --stage all, a folder.")],
    encoder: Annotated[
        str,
        typer.Option(
            help='Images: lite0, hf:NAME_OR_FOLDER, onnx:FILE, "pixels(size=4)". Sounds: logmel, '
            "hf-audio:NAME_OR_FOLDER, birdnet. Both: file:FILE. shotproof show encoders lists all."
        ),
    ] = "lite0",
    stage: Annotated[
        str | None,
        typer.Option(
            help="Use the pooled output of this block, counted from 1; or all for one file per block, in one pass. "
            "For lite0, hf:, hf-audio: and model:."
        ),
    ] = None,
    split: Split = None,
    tasks: Annotated[
        list[Path] | None,
        typer.Option(help="Task set whose changed items (shotproof show changed) are encoded too; repeatable."),
    ] = None,
    skip_bad: SkipBad = False,
    batch_size: BatchSize = None,
) -> None:
    """Compute the features of all items; features computed before come from the cache.

    shotproof encode catalog.parquet --encoder lite0 -o features.parquet

    shotproof encode catalog.parquet --encoder lite0 --tasks blurred.parquet -o features.parquet
    """
    import time

    from shotproof.catalog.catalog import Catalog
    from shotproof.catalog.usable_masks import DRAW_WITHOUT, require_usable_changes, unusable_changes
    from shotproof.core.errors import InputError
    from shotproof.core.runtime.runtime import runtime
    from shotproof.core.storage.parts import is_in_parts
    from shotproof.core.tables import check_output
    from shotproof.features.encoder import encode as encode_items
    from shotproof.features.encoder import encoders
    from shotproof.features.encoders.staged import StagedEncoder, encode_stages, no_stages
    from shotproof.features.feature_parts import encode_parts

    started = time.perf_counter()
    chosen_encoder = encoders.make(encoder)
    check_output(output, folder=stage == ALL)
    if stage is not None and not isinstance(chosen_encoder, StagedEncoder):
        raise no_stages(chosen_encoder)
    if stage is not None and stage != ALL:
        if not stage.isdecimal():
            raise InputError(f"--stage: expected a number or all, found '{stage}'")
        chosen_encoder = encoders.make(encoder, stage=int(stage))
    encode_options: dict[str, Any] = {
        "on_error": "skip" if skip_bad else "raise",
        "runtime": runtime(batch_size=batch_size),
    }
    items = Catalog.read(catalog)
    items = items if split is None else items.in_split(split)
    items = _with_changed_items(items, tasks or (), is_in_parts(output) and stage != ALL)
    if tasks and not skip_bad:
        require_usable_changes(items)
    if is_in_parts(output) and stage != ALL:
        parts = encode_parts(items, chosen_encoder, output, **encode_options)
        for item in parts.record.skipped:
            say(f"skipped  {item}: unreadable", err=True)
        counts = f"{parts.tally.encoded:,} encoded, {parts.tally.reused:,} from the cache"
        counts = f"{counts}, {counted(parts.existing, 'part')} kept"
        size = f"{parts.size:,} numbers each by {chosen_encoder}"
        say(f"{output}: {counted(parts.items, 'item')}, {size}; {counts}, {time.perf_counter() - started:.1f} s")
        return
    if stage == ALL:
        stages = encode_stages(items, chosen_encoder, **encode_options)
        width = len(str(len(stages)))
        outputs = {output / f"stage-{number:0{width}}.parquet": features for number, features in enumerate(stages, 1)}
    else:
        outputs = {output: encode_items(items, chosen_encoder, **encode_options)}
    for path, features in outputs.items():
        features.write(path)
    features = next(iter(outputs.values()))
    skipped, tally = features.record.skipped, features.tally
    reasons = unusable_changes(items) if tasks and skipped else {}
    for item in skipped:
        say(f"skipped  {item}: {reasons.get(item, 'unreadable')}", err=True)
    if reasons:
        say(f"note: tasks that show these changed items cannot be evaluated: {DRAW_WITHOUT}", err=True)
    left_out = f"{len(skipped):,} skipped, " if skipped else ""
    counts = "" if tally is None else f"{tally.encoded:,} encoded, {tally.reused:,} from the cache, "
    content = f"{len(outputs)} stages" if stage == ALL else _size(features)
    say(
        f"{output}: {counted(len(features), 'item')}, {content} by {chosen_encoder}; "
        f"{left_out}{counts}{time.perf_counter() - started:.1f} s"
    )


def _with_changed_items(items: Catalog, files: Sequence[Path], in_parts: bool) -> Catalog:
    """Add the changed items of task sets to a catalog, and say how many there are."""
    from shotproof.cli.arguments import read_all
    from shotproof.core.errors import InputError
    from shotproof.pipeline.encode_tasks import describe_changed_items, with_changed_items

    if not files:
        return items
    if in_parts:
        raise InputError(
            "--tasks cannot write a .parts folder, because a changed item may use the background of an item in another "
            "part: use one file, e.g. -o f.parquet"
        )
    encoded = with_changed_items(items, read_all(files, "tasks"))
    if encoded is items:
        say(f"note: the items of {', '.join(map(str, files))} are not changed: --tasks adds nothing", err=True)
    else:
        say(f"encoding {describe_changed_items(encoded)}", err=True)
    return encoded


def _size(features: Features) -> str:
    """Return the size of features: `1,280 dimensions`, or `maps of 1,280 x 7 x 7`."""
    if features.shape:
        return f"maps of {' x '.join(f'{length:,}' for length in features.shape)}"
    return f"{features.array.shape[1]:,} dimensions"
