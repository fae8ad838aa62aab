"""`shotproof mix`: from a catalog of sounds and a mapping to mixtures and their catalog."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shotproof.cli.arguments import AsJson, Seed, Settings, read_settings
from shotproof.cli.console import print_json, print_table, say
from shotproof.core import limits
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from shotproof.catalog.catalog import Catalog
    from shotproof.sounds.mix import MixSettings

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
    seed: Seed = 0,
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
    setting: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Mix sounds with backgrounds at a set loudness: one catalog with contexts.

    Recordings without a loudness are left out by name. The same command continues interrupted work. By --set:
    embedding, format, peak, short, min_audible, max_overwhelmed, max_alike.

    shotproof mix catalog.parquet --mapping esc50 --seed 0 -o mixed/
    """
    import time

    from shotproof.catalog.catalog import Catalog
    from shotproof.sounds.mix import mix as mix_sounds

    started = time.perf_counter()
    settings = _settings(
        {
            **read_settings(setting or []),
            **{"seed": seed, "dial": dial, "margin_db": gain, "per_background": per_background},
            **{"clean": clean, "on_the_fly": on_the_fly},
        }
    )
    mixed = mix_sounds(Catalog.read(catalog), mapping, output, settings)
    if as_json:
        print_json(_as_json(mixed))
        return
    _print_quality(mixed)
    _print_left_out(mixed)
    say(f"{output}: {counted(len(mixed), 'sound')}, {time.perf_counter() - started:.1f} s")


def _settings(values: dict[str, Any]) -> MixSettings:
    """Make settings of flags and of what --set names."""
    from shotproof.core.errors import UnknownName
    from shotproof.sounds.mix import MixSettings
    from shotproof.sounds.quality import Thresholds

    limits_of_quality = [option.name for option in Thresholds.options()]
    known = [*(option.name for option in MixSettings.options() if option.name != "thresholds"), *limits_of_quality]
    for name in values:
        if name not in known:
            raise UnknownName("setting", name, known)
    if values.get("embedding") == NO_EMBEDDING:
        values["embedding"] = None
    thresholds = Thresholds(**{name: values.pop(name) for name in limits_of_quality if name in values})
    return MixSettings(**values, thresholds=thresholds)


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
