"""`shotproof run`: a whole experiment from one file, a folder of data, or a bundle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shotproof.cli.arguments import AsJson, SkipBad, Trusted, Verbose, with_trust
from shotproof.cli.console import print_json, say, told_notes
from shotproof.core import limits
from shotproof.core.errors import InputError

if TYPE_CHECKING:
    from shotproof.core.trust import Trust
    from shotproof.pipeline.experiment import Experiment
    from shotproof.pipeline.start import StartOptions


def run(
    context: typer.Context,
    experiment: Annotated[
        Path,
        typer.Argument(help="experiment.toml, a folder of images or sounds in class folders, or a bundle (.zip)."),
    ],
    root: Annotated[Path | None, typer.Option(help="Of a bundle: the folder of the data.")] = None,
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            help="Of a folder or a bundle: e.g. lite0, model:FILE or file:FEATURES. Of a folder, also several."
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(help="Of a folder, also several, or of a bundle. Default: five heads, or the bundle's first."),
    ] = None,
    tasks: Annotated[
        int | None,
        typer.Option(min=2, max=limits.TASKS.most, help="Of a folder: tasks per task set. Default: 600."),
    ] = None,
    skip_bad: SkipBad = False,
    skip_small: Annotated[
        bool, typer.Option("--skip-small", help="Of a folder: leave out classes that are too small for the tasks.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The folder to write. Default: the data's name with -results.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show which files would be made; make none.")] = False,
    placebo: Annotated[
        bool | None,
        typer.Option(help="Draw the placebos of FewSTAB and context tasks. Default: as the file says, or yes."),
    ] = None,
    trust: Trusted = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Go from data to report as one TOML file says; a file that is up to date is not made again.

    shotproof run experiment.toml

    Of a folder, whose experiment file is written into the output folder, to change later: shotproof run birds/

    An output folder belongs to one experiment on one data set: any other one is refused.

    Of a bundle, on your encoder: shotproof run birds.zip --root images/ --encoder lite0 -o mine
    """
    from shotproof.cli.results.print_comparison import print_comparison
    from shotproof.core.runtime.runtime import runtime
    from shotproof.core.storage.files import is_folder
    from shotproof.pipeline.checks import placed
    from shotproof.pipeline.experiment import Experiment
    from shotproof.pipeline.start import MADE_BY, StartOptions
    from shotproof.pipeline.study import run as run_experiment

    of_folder = StartOptions(tuple(encoder or ()), tuple(method or ()), tasks, skip_bad, skip_small)
    if experiment.suffix == ".zip":
        _run_bundle(experiment, root, of_folder, output, dry_run, trust, as_json, verbose)
        return
    if root is not None:
        raise InputError(
            "--root is of a bundle: of a folder it is the folder itself, else it is in the experiment file"
        )
    if is_folder(experiment):
        made_by = MADE_BY
        read, trusted = _start(experiment, output, of_folder, dry_run, trust)
    elif of_folder != StartOptions():
        raise InputError(
            "--encoder, --method, --tasks, --skip-bad and --skip-small are of a folder: write them into the "
            "experiment file"
        )
    else:
        made_by = ""
        read, trusted = with_trust(experiment, trust, lambda agreed: (Experiment.read(experiment, agreed), agreed))
        read = read if output is None else replace(read, folder=output)
    if placebo is not None:
        read = replace(read, placebo=placebo)
    with placed(read, "[runtime]"):
        chosen = runtime(**{**read.runtime, **(context.obj or {})})
    with told_notes():
        study = run_experiment(
            read,
            runtime=chosen,
            dry_run=dry_run,
            trust=trusted,
            made_by=made_by,
            verbose=verbose,
            tell=lambda line: say(line, err=True),
        )
    if dry_run:
        return
    if as_json:
        print_json(study.compare().to_json())
    else:
        print_comparison(study.compare(), brief=True)
        say(f"report: {study.page}")


def _start(
    folder: Path, output: Path | None, options: StartOptions, dry_run: bool, trust: bool
) -> tuple[Experiment, Trust]:
    """Write the experiment of a data folder, or read the one that was written before."""
    from shotproof.core.tables import check_output
    from shotproof.pipeline.start import start_experiment
    from shotproof.pipeline.steps.owner import EXPERIMENT_FILE

    into = output or Path(f"{folder.resolve().name}-results")
    file = into / EXPERIMENT_FILE
    check_output(into, folder=True)
    started = with_trust(
        file, trust, lambda agreed: start_experiment(folder, into, options, dry_run=dry_run, trust=agreed)
    )
    if not dry_run:
        say(f"the experiment: {file}", err=True)
    return started


def _run_bundle(
    file: Path,
    root: Path | None,
    options: StartOptions,
    output: Path | None,
    dry_run: bool,
    trust: bool,
    as_json: bool,
    verbose: bool,
) -> None:
    """Evaluate one classifier on the tasks of a bundle, and print its card."""
    from shotproof.cli.results.print_comparison import print_card
    from shotproof.pipeline.bundle.bundle_run import run_bundle
    from shotproof.pipeline.bundle.hub import HUB, download_bundle
    from shotproof.pipeline.start import StartOptions

    encoders, methods = options.encoders, options.methods
    if dry_run or len(encoders) > 1 or len(methods) > 1 or options != StartOptions(encoders, methods):
        raise InputError(
            f"{file} is a bundle, which has its own tasks: expected one --encoder, at most one --method, and "
            "no --tasks, --skip-bad, --skip-small and --dry-run"
        )
    if not encoders:
        raise InputError(f"expected your encoder: shotproof run {file} --root DATA --encoder lite0")
    folder = output or Path(f"{file.stem}-results")
    downloaded = download_bundle(str(file)) if str(file).startswith(HUB) else file
    with told_notes():
        made = with_trust(
            file,
            trust,
            lambda agreed: run_bundle(
                downloaded,
                root,
                encoder=encoders[0],
                output=folder,
                method=next(iter(methods), None),
                trust=agreed,
                verbose=verbose,
                tell=lambda line: say(line, err=True),
            ),
        )
    if as_json:
        print_json(made.card.to_json())
    else:
        print_card(made.card, made.comparison)
        say(f"card: {made.page}")
