"""`shotproof run`: a whole experiment from one file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from shotproof.cli.console import ask, say
from shotproof.cli.runtime import Cache, Device, EngineName, Progress, Workers

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
        str | None, typer.Option(help="Of a bundle: your encoder, e.g. lite0, model:FILE or file:FEATURES.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="Of a bundle: your method. Default: the bundle's first.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Of a bundle: the folder to write. Default: its name.")
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

    Of a folder, whose experiment file is written beside it, to change later: shotproof run birds/

    Of a bundle, on your encoder: shotproof run birds.zip --root images/ --encoder lite0 -o mine
    """
    from shotproof.cli.console import print_json, say_text, told_notes
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
        say_text(SHIPPED.read_text(encoding="utf-8"))
        return
    if experiment is None:
        raise InputError("expected an experiment file or a folder: shotproof run experiment.toml")
    if experiment.suffix == ".zip":
        runtime = make_runtime(workers, device, cache, progress, engine)
        _run_bundle(experiment, root, encoder, method, output, trust, as_json, runtime)
        return
    if (root, encoder, method, output) != (None,) * 4:
        raise InputError(
            "--root, --encoder, --method and --output are of a bundle: write them into the experiment file"
        )
    if is_folder(experiment):
        folder, experiment = experiment, Path(f"{experiment.resolve().name}-results") / "experiment.toml"
        experiment_of_folder(folder, experiment)
        say(f"the experiment: {experiment}", err=True)
    file = experiment
    read, trusted = with_trust(file, trust, lambda agreed: (Experiment.read(file, agreed), agreed))
    if placebo is not None:
        read = replace(read, placebo=placebo)
    with placed(read, "[runtime]"):
        base = current_with(**read.runtime)
    runtime = make_runtime(workers, device, cache, progress, engine, base)
    with runtime, told_notes():
        outcome = run_experiment(
            read, dry_run=dry_run, trust=trusted, tell=lambda line: say(line, err=True), runtime=runtime
        )
    if outcome.comparison is None:
        return
    if as_json:
        print_json(outcome.comparison.to_json())
    else:
        print_comparison(outcome.comparison)
        say(f"report: {outcome.report}")


def _run_bundle(
    file: Path,
    root: Path | None,
    encoder: str | None,
    method: str | None,
    output: Path | None,
    trust: bool,
    as_json: bool,
    runtime: Runtime,
) -> None:
    from shotproof.cli.console import print_json, told_notes
    from shotproof.cli.profile import print_card
    from shotproof.core.errors import InputError
    from shotproof.pipeline.bundle.hub import HUB, download_bundle
    from shotproof.pipeline.bundle.run import run_bundle

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
            tell=lambda line: say(line, err=True),
            runtime=runtime,
        )

    with runtime, told_notes():
        found = with_trust(file, trust, act)
    if as_json:
        print_json(found.card.to_json())
    else:
        print_card(found.card)
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
