"""`shotproof doctor`: a check of the installation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from shotproof.cli.arguments import AsJson
from shotproof.cli.console import say

if TYPE_CHECKING:
    from shotproof.pipeline.diagnosis import Diagnosis


def doctor(as_json: AsJson = False) -> None:
    """Check the installation: dependencies, extras, devices and the cache.

    The exit status is 1 if a required dependency is missing.

    Example: shotproof doctor
    """
    from dataclasses import asdict

    from shotproof.cli.console import print_json
    from shotproof.pipeline.diagnosis import doctor as diagnose

    diagnosis = diagnose()
    if as_json:
        print_json(asdict(diagnosis))
    else:
        _print(diagnosis)
    if not diagnosis.works:
        raise typer.Exit(1)


def _print(diagnosis: Diagnosis) -> None:
    """Print plain lines, which need no dependency that may be missing."""
    say(f"shotproof {diagnosis.version}, Python {diagnosis.python}, {diagnosis.system}")
    _print_section(
        "needed",
        {
            dependency.name: f"{dependency.version or ''}  {dependency.problem or ''}".strip()
            for dependency in diagnosis.dependencies
        },
    )
    _print_section(
        "extras",
        {
            extra.name: f"{extra.install}  (missing: {', '.join(extra.missing)})" if extra.missing else "complete"
            for extra in diagnosis.extras
        },
    )
    _print_section("devices", diagnosis.devices)
    _print_section(
        "encoder files",
        {model_file.encoder: model_file.problem or str(model_file.file) for model_file in diagnosis.model_files},
    )
    state = diagnosis.cache.problem or "writable"
    _print_section("cache", {diagnosis.cache.folder: f"{diagnosis.cache.bytes / 2**20:.1f} MiB, {state}"})
    if diagnosis.cache.problem:
        say("to choose another cache, use --cache FOLDER or the environment variable SHOTPROOF_CACHE")
    broken = [dependency.name for dependency in diagnosis.dependencies if dependency.problem]
    say(
        "",
        f"required dependencies that do not work: {', '.join(broken)}" if broken else "all required dependencies work",
    )


def _print_section(title: str, lines: dict[str, str]) -> None:
    """Print a title and its lines, if there are any."""
    if lines:
        say("", title)
        width = max(map(len, lines))
        for name, text in lines.items():
            say(f"  {name:{width}}  {text}")
