"""`shotproof run`: a whole experiment from one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def run(
    experiment: Annotated[Path, typer.Argument(help="experiment.toml, or a folder of images in class folders.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show which files would be made; make none.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Go from data to report as one TOML file says; a file that is up to date is not made again.

    shotproof run experiment.toml

    Of a folder of images: shotproof run birds/ writes birds-results/experiment.toml, to change later, and runs it.
    """
    from shotproof.cli.console import print_json
    from shotproof.cli.report import print_comparison
    from shotproof.experiment import experiment_of_folder
    from shotproof.run import run as run_experiment

    if experiment.is_dir():
        folder, experiment = experiment, Path(f"{experiment.resolve().name}-results") / "experiment.toml"
        experiment_of_folder(folder, experiment)
        typer.echo(f"the experiment: {experiment}", err=True)
    outcome = run_experiment(experiment, dry_run=dry_run, tell=lambda line: typer.echo(line, err=True))
    if outcome.comparison is None:
        return
    if as_json:
        print_json(outcome.comparison.to_json())
    else:
        print_comparison(outcome.comparison)
        typer.echo(f"report: {outcome.report}")
