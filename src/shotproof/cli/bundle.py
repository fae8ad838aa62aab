"""`shotproof bundle`: a benchmark as one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shotproof.cli.console import say
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from shotproof.core.trust import Trust
    from shotproof.pipeline.bundle.bundle import Bundle


def bundle(
    given: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run or profile; to verify, a zip.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The zip to write. Default: RUN's name with .zip.")
    ] = None,
    root: Annotated[
        Path | None, typer.Option(help="The folder that the catalog's paths start from. Default: the deepest of all.")
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Verify a bundle, and write nothing.")] = False,
    upload: Annotated[
        str | None, typer.Option(help="Put it into this data set of the Hugging Face Hub, e.g. me/birds.")
    ] = None,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Pack files elsewhere that the tasks were drawn by. Default: ask at a terminal."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the manifest as JSON.")] = False,
) -> None:
    """Write the benchmark of a run as one zip, which others run on their own encoder: tasks, catalog, attributes, card.

    shotproof bundle birds-profile -o birds.zip

    shotproof run birds.zip --root CUB_200_2011/images --encoder lite0
    """
    from shotproof.cli.console import print_json
    from shotproof.cli.run import with_trust
    from shotproof.core.errors import InputError
    from shotproof.pipeline.bundle.bundle import Bundle
    from shotproof.pipeline.bundle.hub import upload_bundle
    from shotproof.pipeline.bundle.write import bundle as write

    made = given.suffix == ".zip"
    if verify and not made:
        raise InputError(f"--verify {given}: expected a file that ends in .zip")
    if made and (output is not None or root is not None):
        raise InputError(f"{given} is a bundle already: expected neither --output nor --root")
    file = given if made else output or Path(f"{given.resolve().name}.zip")

    def act(agreed: Trust) -> Bundle:
        return write(given, file, root=root, trust=agreed, tell=lambda line: say(line, err=True))

    found = Bundle.read(file) if made else with_trust(given, trust, act)
    where = None if upload is None else upload_bundle(file, upload)
    if as_json:
        print_json(found.to_json())
    else:
        _tell(file, found, made)
        if where is not None:
            say(f"uploaded: {where}")


def _tell(file: Path, found: Bundle, verified: bool) -> None:
    for name, one in found.files.items():
        say(f"{one.sha256[:16]}  {one.bytes:>12,}  {name}")
    what = f"{counted(len(found.names('tasks')), 'task set')} of {found.name}, methods {', '.join(found.methods)}"
    say(f"{file}: {what}{'; every digest holds' if verified else ''}")
    say(f"data: the folder '{found.paths_from}'; license: {found.license or 'unknown'}")
