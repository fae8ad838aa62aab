"""`shotproof encode`: from a catalog to features."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shotproof.cli.arguments import BatchSize, SkipBad, Split
from shotproof.cli.console import say
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from shotproof.features.features import Features

ALL = "all"  # stages


def encode(
    catalog: Annotated[Path, typer.Argument(help="catalog.parquet")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The features to write; of all stages, a folder.")],
    encoder: Annotated[
        str,
        typer.Option(
            help='Images: lite0, hf:NAME_OR_FOLDER, onnx:FILE, "pixels(size=4)". Sounds: logmel, '
            "hf-audio:NAME_OR_FOLDER, birdnet. Either: file:FILE. shotproof show encoders has all."
        ),
    ] = "lite0",
    stage: Annotated[
        str | None,
        typer.Option(
            help="The pooled output of one block, counted from 1, or of every one: all, in one pass, one file each. "
            "For lite0, hf:, hf-audio: and model:."
        ),
    ] = None,
    split: Split = None,
    skip_bad: SkipBad = False,
    batch_size: BatchSize = None,
) -> None:
    """Turn every item into a feature; what was encoded before comes from the cache.

    shotproof encode catalog.parquet --encoder lite0 -o features.parquet
    """
    import time

    from shotproof.catalog.catalog import Catalog
    from shotproof.core.errors import InputError
    from shotproof.core.runtime.runtime import runtime
    from shotproof.core.storage.parts import in_parts
    from shotproof.core.tables import check_output
    from shotproof.features.encoder import encode as encode_items
    from shotproof.features.encoder import encoders
    from shotproof.features.encoders.staged import StagedEncoder, encode_stages, no_stages
    from shotproof.features.feature_parts import encode_parts

    started = time.perf_counter()
    chosen = encoders.make(encoder)
    check_output(output, folder=stage == ALL)
    if stage is not None and not isinstance(chosen, StagedEncoder):
        raise no_stages(chosen)
    if stage is not None and stage != ALL:
        if not stage.isdecimal():
            raise InputError(f"--stage: expected a number or all, found '{stage}'")
        chosen = encoders.make(encoder, stage=int(stage))
    how: dict[str, Any] = {"on_error": "skip" if skip_bad else "raise", "runtime": runtime(batch_size=batch_size)}
    items = Catalog.read(catalog)
    items = items if split is None else items.in_split(split)
    if in_parts(output) and stage != ALL:
        parts = encode_parts(items, chosen, output, **how)
        for item in parts.record.skipped:
            say(f"skipped  {item}: cannot be read", err=True)
        done = f"{parts.tally.encoded:,} encoded, {parts.tally.reused:,} from the cache"
        done = f"{done}, {counted(parts.kept, 'part')} kept"
        size = f"{parts.size:,} numbers each by {chosen}"
        say(f"{output}: {counted(parts.items, 'item')}, {size}; {done}, {time.perf_counter() - started:.1f} s")
        return
    if stage == ALL:
        made = encode_stages(items, chosen, **how)
        width = len(str(len(made)))
        written = {output / f"stage-{place:0{width}}.parquet": one for place, one in enumerate(made, 1)}
    else:
        written = {output: encode_items(items, chosen, **how)}
    for path, features in written.items():
        features.write(path)
    features = next(iter(written.values()))
    skipped, tally = features.record.skipped, features.tally
    for item in skipped:
        say(f"skipped  {item}: cannot be read", err=True)
    left_out = f"{len(skipped):,} skipped, " if skipped else ""
    made_of = "" if tally is None else f"{tally.encoded:,} encoded, {tally.reused:,} from the cache, "
    what = f"{len(written)} stages" if stage == ALL else _size(features)
    say(
        f"{output}: {counted(len(features), 'item')}, {what} by {chosen}; "
        f"{left_out}{made_of}{time.perf_counter() - started:.1f} s"
    )


def _size(features: Features) -> str:
    """`1,280 dimensions`, or `maps of 1,280 x 7 x 7`."""
    if features.shape:
        return f"maps of {' x '.join(f'{length:,}' for length in features.shape)}"
    return f"{features.array.shape[1]:,} dimensions"
