"""`shotproof doctor`: what is installed, and whether it works."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from shotproof.cli.arguments import AsJson
from shotproof.cli.console import say

if TYPE_CHECKING:
    from shotproof.pipeline.diagnosis import Diagnosis


def doctor(as_json: AsJson = False) -> None:
    """Tell what is installed, which extras, which devices, whether the cache can be written.

    The exit status is 1 if something is missing that Shotproof cannot do without.

    Example: shotproof doctor
    """
    from dataclasses import asdict

    from shotproof.cli.console import print_json
    from shotproof.pipeline.diagnosis import doctor as diagnose

    found = diagnose()
    if as_json:
        print_json(asdict(found))
    else:
        _print(found)
    if not found.works:
        raise typer.Exit(1)


def _print(found: Diagnosis) -> None:
    """Plain lines, which need nothing that might be missing."""
    say(f"shotproof {found.version}, Python {found.python}, {found.system}")
    _section(
        "needed",
        {
            dependency.name: f"{dependency.version or ''}  {dependency.problem or ''}".strip()
            for dependency in found.dependencies
        },
    )
    _section(
        "extras",
        {
            extra.name: f"{extra.install}  (missing: {', '.join(extra.missing)})" if extra.missing else "complete"
            for extra in found.extras
        },
    )
    _section("devices", found.devices)
    _section(
        "files of encoders",
        {model_file.encoder: model_file.problem or str(model_file.file) for model_file in found.model_files},
    )
    state = found.cache.problem or "can be written"
    _section("cache", {found.cache.folder: f"{found.cache.bytes / 2**20:.1f} MiB, {state}"})
    if found.cache.problem:
        say("choose another cache: --cache FOLDER, or the environment variable SHOTPROOF_CACHE")
    wrong = [dependency.name for dependency in found.dependencies if dependency.problem]
    say("", f"shotproof cannot work without: {', '.join(wrong)}" if wrong else "all that is needed works")


def _section(title: str, lines: dict[str, str]) -> None:
    if lines:
        say("", title)
        width = max(map(len, lines))
        for name, text in lines.items():
            say(f"  {name:{width}}  {text}")
