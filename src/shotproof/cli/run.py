"""`shotproof run`: a whole experiment from one file, a folder of data, or a bundle."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from shotproof.cli.console import ask, say
from shotproof.cli.runtime_options import Cache, Device, EngineName, Progress, Verbose, Workers
from shotproof.core import limits

if TYPE_CHECKING:
    from shotproof.core.runtime.runtime import Runtime
    from shotproof.core.trust import Trust
    from shotproof.pipeline.profile.profile import Profile

T = TypeVar("T")


def run(
    experiment: Annotated[
        Path | None,
        typer.Argument(help="experiment.toml, a folder of images or sounds in class folders, or a bundle (.zip)."),
    ] = None,
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
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Of a folder: leave out files that cannot be read.")
    ] = False,
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
    verbose: Verbose = False,
) -> None:
    """Go from data to report as one TOML file says; a file that is up to date is not made again.

    shotproof run experiment.toml

    Of a folder, whose experiment file is written into the output folder, to change later: shotproof run birds/

    An output folder belongs to one experiment on one data set: any other one is refused.

    Of a bundle, on your encoder: shotproof run birds.zip --root images/ --encoder lite0 -o mine
    """
    from shotproof.cli.console import print_json, say_text, told_notes
    from shotproof.cli.results.report import print_comparison
    from shotproof.cli.runtime_options import make_runtime
    from shotproof.core.errors import InputError
    from shotproof.core.runtime.runtime import runtime as current_with
    from shotproof.core.storage.files import is_folder
    from shotproof.core.tables import check_output
    from shotproof.pipeline.checks import placed
    from shotproof.pipeline.experiment import Experiment
    from shotproof.pipeline.experiment_file import SHIPPED
    from shotproof.pipeline.start import MADE_BY, StartOptions, start_experiment
    from shotproof.pipeline.steps.owner import EXPERIMENT_FILE
    from shotproof.pipeline.study import run as run_experiment

    if schema:
        say_text(SHIPPED.read_text(encoding="utf-8"))
        return
    if experiment is None:
        raise InputError("expected an experiment file or a folder: shotproof run experiment.toml")
    of_folder = (tasks, skip_bad, skip_small) != (None, False, False)
    if experiment.suffix == ".zip":
        if of_folder or dry_run or len(encoder or ()) > 1 or len(method or ()) > 1:
            raise InputError(
                f"{experiment} is a bundle, which has its own tasks: expected one --encoder, at most one --method, and "
                "no --tasks, --skip-bad, --skip-small and --dry-run"
            )
        runtime = make_runtime(workers, device, cache, progress, engine)
        of_user = (next(iter(encoder or ()), None), next(iter(method or ()), None))
        _run_bundle(experiment, root, *of_user, output, trust, as_json, verbose, runtime)
        return
    if root is not None:
        raise InputError(
            "--root is of a bundle: of a folder it is the folder itself, else it is in the experiment file"
        )
    file, made_by = experiment, ""
    if is_folder(experiment):
        folder, made_by = experiment, MADE_BY
        output = output or Path(f"{experiment.resolve().name}-results")
        file = output / EXPERIMENT_FILE
        check_output(output, folder=True)
        options = StartOptions(tuple(encoder or ()), tuple(method or ()), tasks, skip_bad, skip_small)
        into = output
        read, trusted = with_trust(
            file, trust, lambda agreed: start_experiment(folder, into, options, dry_run=dry_run, trust=agreed)
        )
        if not dry_run:
            say(f"the experiment: {file}", err=True)
    else:
        if of_folder or encoder or method:
            raise InputError(
                "--encoder, --method, --tasks, --skip-bad and --skip-small are of a folder: write them into the "
                "experiment file"
            )
        read, trusted = with_trust(file, trust, lambda agreed: (Experiment.read(file, agreed), agreed))
        read = read if output is None else replace(read, folder=output)
    if placebo is not None:
        read = replace(read, placebo=placebo)
    with placed(read, "[runtime]"):
        base = current_with(**read.runtime)
    runtime = make_runtime(workers, device, cache, progress, engine, base)
    with runtime, told_notes():
        study = run_experiment(
            read,
            dry_run=dry_run,
            trust=trusted,
            made_by=made_by,
            verbose=verbose,
            tell=lambda line: say(line, err=True),
            runtime=runtime,
        )
    if dry_run:
        return
    if as_json:
        print_json(study.compare().to_json())
    else:
        print_comparison(study.compare())
        say(f"report: {study.page}")


def _run_bundle(
    file: Path,
    root: Path | None,
    encoder: str | None,
    method: str | None,
    output: Path | None,
    trust: bool,
    as_json: bool,
    verbose: bool,
    runtime: Runtime,
) -> None:
    from shotproof.cli.console import print_json, told_notes
    from shotproof.cli.profile import print_card
    from shotproof.comparison.sentences import interval_sentences
    from shotproof.core.errors import InputError
    from shotproof.pipeline.bundle.bundle_run import run_bundle
    from shotproof.pipeline.bundle.hub import HUB, download_bundle

    if encoder is None:
        raise InputError(f"expected your encoder: shotproof run {file} --root DATA --encoder lite0")
    folder = output or Path(f"{file.stem}-results")
    there = download_bundle(str(file)) if str(file).startswith(HUB) else file

    def act(agreed: Trust) -> Profile:
        return run_bundle(
            there,
            root,
            encoder=encoder,
            output=folder,
            method=method,
            trust=agreed,
            verbose=verbose,
            tell=lambda line: say(line, err=True),
            runtime=runtime,
        )

    with runtime, told_notes():
        found = with_trust(file, trust, act)
    if as_json:
        print_json(found.card.to_json())
    else:
        print_card(found.card)
        for sentence in interval_sentences(found.comparison):
            say(sentence)
        say(f"card: {found.page}")


def with_trust(file: Path, trust: bool, act: Callable[[Trust], T]) -> T:
    """Do something with what a user at a terminal agrees to of the code and servers that a file names, one by one.

    Raises:
        NotTrusted: the answer is no, or nobody can be asked.
    """
    from shotproof.core.trust import NotTrusted

    agreed: list[str] = []
    while True:
        try:
            return act(trust or agreed)
        except NotTrusted as refused:
            if not sys.stdin.isatty() or not ask(f"{file}: {refused.what}. Go on?"):
                raise
            agreed.append(refused.what)
