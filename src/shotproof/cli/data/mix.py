"""`shotproof mix`: from a catalog of sounds and a mapping to mixtures and their catalog."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shotproof.cli.console import print_json, print_table, say
from shotproof.cli.runtime_options import Cache, Device, EngineName, Progress, Workers, make_runtime
from shotproof.core import limits
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from shotproof.catalog.catalog import Catalog

SHOWN = 10
NO_EMBEDDING = "none"


def mix(
    catalog: Annotated[Path, typer.Argument(help="catalog.parquet of sounds: foregrounds and backgrounds.")],
    mapping: Annotated[
        str,
        typer.Option(help="TOML or CSV file that names the backgrounds of each foreground, or esc50, our own mapping."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write: catalog.parquet and the mixtures.")
    ],
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            max=limits.SEED.most,
            help="Decides which recordings meet, and splits that the mapping leaves open.",
        ),
    ] = 0,
    dial: Annotated[float, typer.Option(help="a: the background's amplitude, 0 for none, 1 as in SpurAudio.")] = 1.0,
    gain: Annotated[float, typer.Option(help="g: decibels by which the foreground is louder, at a dial of 1.")] = 8.0,
    per_background: Annotated[
        int | None,
        typer.Option(min=1, max=limits.MOST, help="Recordings of a foreground to mix with each background; all."),
    ] = None,
    clean: Annotated[
        bool, typer.Option("--clean", help="Also the foregrounds alone, with the context 'clean'.")
    ] = False,
    on_the_fly: Annotated[
        bool, typer.Option("--on-the-fly", help="Write the catalog only: the sounds are mixed when they are read.")
    ] = False,
    format: Annotated[str, typer.Option(help="flac or wav; the samples are the same.")] = "flac",
    embedding: Annotated[
        str, typer.Option(help="Encoder that says how alike two recordings are: logmel, file:FILE, ...; or none.")
    ] = "logmel",
    peak: Annotated[
        str, typer.Option(help="clipping: scale sums that would clip to full scale; always: scale all of them.")
    ] = "clipping",
    short: Annotated[
        str, typer.Option(help="repeat: recordings of less than 5 s are repeated; pad: silence follows them.")
    ] = "repeat",
    min_audible: Annotated[
        float | None, typer.Option(help="Drop mixtures whose background is heard in a smaller share of the time.")
    ] = None,
    max_overwhelmed: Annotated[
        float | None,
        typer.Option(help="Drop those in which it is the stronger in a larger share of the foreground's time."),
    ] = None,
    max_alike: Annotated[
        float | None, typer.Option(help="Drop those whose foreground and background have a higher cosine.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    workers: Workers = None,
    device: Device = None,
    cache: Cache = None,
    progress: Progress = None,
    engine: EngineName = None,
) -> None:
    """Mix sounds with backgrounds at a set loudness: one catalog with contexts.

    Recordings without a loudness are left out by name. The same command continues interrupted work.

    shotproof mix catalog.parquet --mapping esc50 --seed 0 -o mixed/
    """
    import time

    from shotproof.catalog.catalog import Catalog
    from shotproof.sounds.mix import MixSettings
    from shotproof.sounds.mix import mix as mix_sounds
    from shotproof.sounds.quality import Thresholds

    started = time.perf_counter()
    runtime = make_runtime(workers, device, cache, progress, engine)
    settings = MixSettings(
        seed=seed,
        dial=dial,
        margin_db=gain,
        per_background=per_background,
        clean=clean,
        on_the_fly=on_the_fly,
        format=format,
        embedding=None if embedding == NO_EMBEDDING else embedding,
        peak=peak,  # type: ignore[arg-type]
        short=short,  # type: ignore[arg-type]
        thresholds=Thresholds(min_audible, max_overwhelmed, max_alike),
    )
    mixed = mix_sounds(Catalog.read(catalog), mapping, output, settings, runtime=runtime)
    if json:
        print_json(_as_json(mixed))
        return
    _print_quality(mixed)
    _print_left_out(mixed)
    say(f"{output}: {counted(len(mixed), 'sound')}, {time.perf_counter() - started:.1f} s")


def _as_json(mixed: Catalog) -> dict[str, Any]:
    from shotproof.sounds.quality import quality_by

    return {
        "items": len(mixed),
        "digest": mixed.digest,
        "skipped": list(mixed.record.skipped),
        "dropped": mixed.record.dropped,
        "foregrounds": quality_by(mixed, "label"),
        "backgrounds": quality_by(mixed, "context"),
    }


def _print_quality(mixed: Catalog) -> None:
    from shotproof.sounds.quality import quality_by

    for title, column in (("foreground", "label"), ("background", "context")):
        records = quality_by(mixed, column)
        rows = [[_cell(value) for value in record.values()] for record in records]
        print_table(f"by {title}", [title, *(name.replace("_", " ") for name in list(records[0])[1:])], rows)
        say("")


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _print_left_out(mixed: Catalog) -> None:
    skipped = mixed.record.skipped
    for record in skipped[:SHOWN]:
        say(f"skipped  {record['item']} ({record['label']}): {record['reason']}", err=True)
    if len(skipped) > SHOWN:
        say(f"skipped  ... and {len(skipped) - SHOWN:,} more (--json)", err=True)
    for why, count in mixed.record.dropped.items():
        say(f"dropped  {counted(count, 'mixture')}: {why}", err=True)
