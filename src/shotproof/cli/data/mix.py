"""`shotproof mix`: mixtures of foreground and background sounds, with their catalog."""

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

MAX_SHOWN = 10
NO_EMBEDDING = "none"


def mix(
    catalog: Annotated[Path, typer.Argument(help="Catalog of sounds, catalog.parquet: foregrounds and backgrounds.")],
    mapping: Annotated[
        str,
        typer.Option(help="TOML or CSV file with the backgrounds of each foreground, or esc50 (built in)."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write: catalog.parquet and the mixtures.")],
    seed: Seed = 0,
    dial: Annotated[float, typer.Option(help="Amplitude of the background: 0 for none, 1 as in SpurAudio.")] = 1.0,
    gain: Annotated[float, typer.Option(help="Decibels by which the foreground is louder, at dial 1.")] = 8.0,
    per_background: Annotated[
        int | None,
        typer.Option(
            min=1, max=limits.MOST, help="Recordings of each foreground to mix with each background. Default: all."
        ),
    ] = None,
    clean: Annotated[
        bool, typer.Option("--clean", help="Also add the foregrounds without a background, as context 'clean'.")
    ] = False,
    on_the_fly: Annotated[
        bool, typer.Option("--on-the-fly", help="Write only the catalog, and mix the sounds when they are read.")
    ] = False,
    setting: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Mix sounds with backgrounds at a given loudness, and create a catalog with contexts.

    Silent recordings are left out and listed. After an interruption, run the same command again to continue. Settings
    for --set: embedding, format, peak, short, min_audible, max_overwhelmed, max_alike.

    shotproof mix catalog.parquet --mapping esc50 --seed 0 -o mixed/
    """
    import time

    from shotproof.catalog.catalog import Catalog
    from shotproof.sounds.mix import mix as mix_sounds

    started = time.perf_counter()
    settings = _build_settings(
        {
            **read_settings(setting or []),
            **{"seed": seed, "dial": dial, "margin_db": gain, "per_background": per_background},
            **{"clean": clean, "on_the_fly": on_the_fly},
        }
    )
    mixed = mix_sounds(Catalog.read(catalog), mapping, output, settings)
    if as_json:
        print_json(_to_json(mixed))
        return
    _print_quality(mixed)
    _print_left_out(mixed)
    say(f"{output}: {counted(len(mixed), 'sound')}, {time.perf_counter() - started:.1f} s")


def _build_settings(values: dict[str, Any]) -> MixSettings:
    """Build the settings from the flags and from --set."""
    from shotproof.core.errors import UnknownName
    from shotproof.sounds.mix import MixSettings
    from shotproof.sounds.quality import Thresholds

    threshold_names = [option.name for option in Thresholds.options()]
    known_names = [*(option.name for option in MixSettings.options() if option.name != "thresholds"), *threshold_names]
    for name in values:
        if name not in known_names:
            raise UnknownName("setting", name, known_names)
    if values.get("embedding") == NO_EMBEDDING:
        values["embedding"] = None
    thresholds = Thresholds(**{name: values.pop(name) for name in threshold_names if name in values})
    return MixSettings(**values, thresholds=thresholds)


def _to_json(mixed: Catalog) -> dict[str, Any]:
    """Return the size of the mixture catalog, what was left out, and the quality per class and context."""
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
    """Print the quality of the mixtures by foreground and by background."""
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
    """Print which recordings and how many mixtures were left out, and why."""
    skipped = mixed.record.skipped
    for record in skipped[:MAX_SHOWN]:
        say(f"skipped  {record['item']} ({record['label']}): {record['reason']}", err=True)
    if len(skipped) > MAX_SHOWN:
        say(f"skipped  ... and {len(skipped) - MAX_SHOWN:,} more (--json)", err=True)
    for reason, count in mixed.record.dropped.items():
        say(f"dropped  {counted(count, 'mixture')}: {reason}", err=True)
