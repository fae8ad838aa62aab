"""`shotproof run`: a whole experiment from one file."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shotproof.cli.runtime import Cache, Device, EngineName, Progress, Workers

if TYPE_CHECKING:
    from shotproof.core.trust import Trust


def run(
    experiment: Annotated[
        Path | None, typer.Argument(help="experiment.toml, or a folder of images or sounds in class folders.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show which files would be made; make none.")] = False,
    placebo: Annotated[
        bool | None,
        typer.Option(help="Draw the placebos of FewSTAB and context tasks. Default: as the file says, or yes."),
    ] = None,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Import code and ask servers that the file names. Default: ask at a terminal."),
    ] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of experiment files.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
    workers: Workers = None,
    device: Device = None,
    cache: Cache = None,
    progress: Progress = None,
    engine: EngineName = None,
) -> None:
    """Go from data to report as one TOML file says; a file that is up to date is not made again.

    shotproof run experiment.toml

    Of a folder: shotproof run birds/ writes birds-results/experiment.toml, to change later, and runs it.
    """
    from shotproof.cli.console import print_json, told_notes
    from shotproof.cli.results.report import print_comparison
    from shotproof.cli.runtime import make_runtime
    from shotproof.core.errors import InputError
    from shotproof.core.files import is_folder
    from shotproof.core.runtime.runtime import runtime as current_with
    from shotproof.pipeline.checks import placed
    from shotproof.pipeline.experiment import Experiment
    from shotproof.pipeline.run import run as run_experiment
    from shotproof.pipeline.schema import SHIPPED
    from shotproof.pipeline.start import experiment_of_folder

    if schema:
        typer.echo(SHIPPED.read_text(encoding="utf-8"), nl=False)
        return
    if experiment is None:
        raise InputError("expected an experiment file or a folder: shotproof run experiment.toml")
    if is_folder(experiment):
        folder, experiment = experiment, Path(f"{experiment.resolve().name}-results") / "experiment.toml"
        experiment_of_folder(folder, experiment)
        typer.echo(f"the experiment: {experiment}", err=True)
    trusted: Trust = trust or asked_trust(experiment)
    read = Experiment.read(experiment, trusted)
    if placebo is not None:
        read = replace(read, placebo=placebo)
    with placed(read, "[runtime]"):
        base = current_with(**read.runtime)
    runtime = make_runtime(workers, device, cache, progress, engine, base)
    with runtime, told_notes():
        outcome = run_experiment(
            read, dry_run=dry_run, trust=trusted, tell=lambda line: typer.echo(line, err=True), runtime=runtime
        )
    if outcome.comparison is None:
        return
    if as_json:
        print_json(outcome.comparison.to_json())
    else:
        print_comparison(outcome.comparison)
        typer.echo(f"report: {outcome.report}")


def asked_trust(experiment: Path) -> list[str]:
    """What a user at a terminal agrees to of the code and the servers that a file names: one question for each.

    Raises:
        NotTrusted: the answer is no, or nobody can be asked.
    """
    from shotproof.core.trust import NotTrusted
    from shotproof.pipeline.experiment import Experiment

    agreed: list[str] = []
    while True:
        try:
            Experiment.read(experiment, agreed)
        except NotTrusted as refused:
            if not sys.stdin.isatty() or not typer.confirm(f"{experiment}: {refused.what}. Go on?", err=True):
                raise
            agreed.append(refused.what)
        else:
            return agreed
