"""`shotproof run`: a complete experiment from a file, a data folder, or a bundle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shotproof.cli.arguments import AsJson, SkipBad, Trusted, Verbose, with_trust
from shotproof.cli.console import print_json, printed_notes, say
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
        typer.Argument(
            help="experiment.toml, a folder with one folder of images or sounds per class, or a bundle (.zip)."
        ),
    ],
    root: Annotated[Path | None, typer.Option(help="For a bundle: folder of the data.")] = None,
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            help="For a folder or bundle: lite0, model:FILE, file:FEATURES or another encoder. Repeatable for a folder."
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="For a folder or bundle. Repeatable for a folder. Default: five heads, or the bundle's first method."
        ),
    ] = None,
    tasks: Annotated[
        int | None,
        typer.Option(min=2, max=limits.TASKS.most, help="For a folder: tasks per task set. Default: 600."),
    ] = None,
    skip_bad: SkipBad = False,
    skip_small: Annotated[
        bool, typer.Option("--skip-small", help="For a folder: leave out classes that are too small for the tasks.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder to write. Default: the name of the data with -results."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the files that would be written.")] = False,
    placebo: Annotated[
        bool | None,
        typer.Option(help="Draw placebos of FewSTAB and context tasks. Default: as in the file, or yes."),
    ] = None,
    trust: Trusted = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Run an experiment from data to report, as a TOML file describes it; files that are up to date are reused.

    shotproof run experiment.toml

    For a data folder, an experiment file is written into the output folder, which you can edit: shotproof run birds/

    For a bundle, your encoder is evaluated on its tasks: shotproof run birds.zip --root images/ --encoder lite0 -o mine

    An output folder belongs to one experiment on one data set; other experiments are rejected.
    """
    from shotproof.cli.results.print_comparison import print_comparison
    from shotproof.core.runtime.runtime import runtime
    from shotproof.core.storage.files import is_folder
    from shotproof.pipeline.checks import error_location
    from shotproof.pipeline.experiment import Experiment
    from shotproof.pipeline.start import MADE_BY, StartOptions
    from shotproof.pipeline.study import run as run_experiment

    options = StartOptions(tuple(encoder or ()), tuple(method or ()), tasks, skip_bad, skip_small)
    if experiment.suffix == ".zip":
        _run_bundle(experiment, root, options, output, dry_run, trust, as_json, verbose)
        return
    if root is not None:
        raise InputError(
            "--root is for bundles: a data folder is its own root, and an experiment file names the root itself"
        )
    if is_folder(experiment):
        made_by = MADE_BY
        settings, consent = _start(experiment, output, options, dry_run, trust)
    elif options != StartOptions():
        raise InputError(
            "--encoder, --method, --tasks, --skip-bad and --skip-small are for data folders: change the experiment "
            "file instead"
        )
    else:
        made_by = ""
        settings, consent = with_trust(experiment, trust, lambda agreed: (Experiment.read(experiment, agreed), agreed))
        settings = settings if output is None else replace(settings, folder=output)
    if placebo is not None:
        settings = replace(settings, placebo=placebo)
    with error_location(settings, "[runtime]"):
        chosen_runtime = runtime(**{**settings.runtime, **(context.obj or {})})
    with printed_notes():
        study = run_experiment(
            settings,
            runtime=chosen_runtime,
            dry_run=dry_run,
            trust=consent,
            made_by=made_by,
            verbose=verbose,
            log=lambda line: say(line, err=True),
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
    """Write the experiment of a data folder, or read the existing one."""
    from shotproof.core.tables import check_output
    from shotproof.pipeline.start import start_experiment
    from shotproof.pipeline.steps.owner import EXPERIMENT_FILE

    output = output or Path(f"{folder.resolve().name}-results")
    file = output / EXPERIMENT_FILE
    check_output(output, folder=True)
    started = with_trust(
        file, trust, lambda agreed: start_experiment(folder, output, options, dry_run=dry_run, trust=agreed)
    )
    if not dry_run:
        say(f"experiment: {file}", err=True)
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
    """Evaluate a classifier on the tasks of a bundle, and print its card."""
    from shotproof.cli.results.print_comparison import print_card
    from shotproof.pipeline.bundle.bundle_run import run_bundle
    from shotproof.pipeline.bundle.hub import HUB, download_bundle
    from shotproof.pipeline.start import StartOptions

    encoders, methods = options.encoders, options.methods
    if dry_run or len(encoders) > 1 or len(methods) > 1 or options != StartOptions(encoders, methods):
        raise InputError(
            f"{file} is a bundle, which has its own tasks: expected one --encoder, at most one --method, and "
            "none of --tasks, --skip-bad, --skip-small and --dry-run"
        )
    if not encoders:
        raise InputError(f"the encoder is missing: shotproof run {file} --root DATA --encoder lite0")
    folder = output or Path(f"{file.stem}-results")
    downloaded = download_bundle(str(file)) if str(file).startswith(HUB) else file
    with printed_notes():
        result = with_trust(
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
                log=lambda line: say(line, err=True),
            ),
        )
    if as_json:
        print_json(result.card.to_json())
    else:
        print_card(result.card, result.comparison)
        say(f"card: {result.page}")
