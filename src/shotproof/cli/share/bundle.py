"""`shotproof share bundle`: benchmarks as single files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shotproof.cli.arguments import AsJson, Trusted
from shotproof.cli.console import say
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from shotproof.pipeline.bundle.bundle import Bundle


def bundle(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Folder of a run or profile; with --upload also a bundle (.zip).")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Zip file to write. Default: the name of RUN with .zip.")
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option(
            help="Folder that the paths of the catalog are relative to. Default: their deepest common folder."
        ),
    ] = None,
    upload: Annotated[
        str | None, typer.Option(help="Upload the bundle to this data set of the Hugging Face Hub, e.g. me/birds.")
    ] = None,
    trust: Trusted = False,
    as_json: AsJson = False,
) -> None:
    """Pack the benchmark of a run (tasks, catalog, attributes, card) as one zip, for others to run on their encoder.

    shotproof share bundle birds-profile -o birds.zip

    shotproof run birds.zip --root CUB_200_2011/images --encoder lite0
    """
    from shotproof.cli.arguments import with_trust
    from shotproof.cli.console import print_json
    from shotproof.core.errors import InputError
    from shotproof.pipeline.bundle.bundle import Bundle
    from shotproof.pipeline.bundle.hub import upload_bundle
    from shotproof.pipeline.bundle.write import bundle as write

    is_bundle = run.suffix == ".zip"
    if is_bundle and (output is not None or root is not None or upload is None):
        raise InputError(f"{run} is already a bundle: expected only --upload; to check it, use shotproof share verify")
    file = run if is_bundle else output or Path(f"{run.resolve().name}.zip")
    if is_bundle:
        contents = Bundle.read(file)
    else:
        log = lambda line: say(line, err=True)  # noqa: E731
        contents = with_trust(run, trust, lambda agreed: write(run, file, root=root, trust=agreed, log=log))
    address = None if upload is None else upload_bundle(file, upload)
    if as_json:
        print_json(contents.to_json())
        return
    print_bundle(file, contents)
    if address is not None:
        say(f"uploaded: {address}")


def print_bundle(file: Path, contents: Bundle) -> None:
    """Print the files of a bundle."""
    for name, member in contents.files.items():
        say(f"{member.sha256[:16]}  {member.bytes:>12,}  {name}")
    sets = counted(len(contents.names("tasks")), "task set")
    say(f"{file}: {sets} of {contents.name}, methods {', '.join(contents.methods)}")
    say(f"data: the folder '{contents.paths_from}'; license: {contents.license or 'unknown'}")
