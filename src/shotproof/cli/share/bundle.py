"""`shotproof share bundle`: a benchmark as one file."""

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
        Path, typer.Argument(metavar="RUN", help="The folder of a run or profile; with --upload also a bundle (.zip).")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The zip to write. Default: RUN's name with .zip.")
    ] = None,
    root: Annotated[
        Path | None, typer.Option(help="The folder that the catalog's paths start from. Default: the deepest of all.")
    ] = None,
    upload: Annotated[
        str | None, typer.Option(help="Put it into this data set of the Hugging Face Hub, e.g. me/birds.")
    ] = None,
    trust: Trusted = False,
    as_json: AsJson = False,
) -> None:
    """Write the benchmark of a run as one zip, which others run on their own encoder: tasks, catalog, attributes, card.

    shotproof share bundle birds-profile -o birds.zip

    shotproof run birds.zip --root CUB_200_2011/images --encoder lite0
    """
    from shotproof.cli.arguments import with_trust
    from shotproof.cli.console import print_json
    from shotproof.core.errors import InputError
    from shotproof.pipeline.bundle.bundle import Bundle
    from shotproof.pipeline.bundle.hub import upload_bundle
    from shotproof.pipeline.bundle.write import bundle as write

    is_made = run.suffix == ".zip"
    if is_made and (output is not None or root is not None or upload is None):
        raise InputError(f"{run} is a bundle already: expected --upload alone; shotproof share verify checks it")
    file = run if is_made else output or Path(f"{run.resolve().name}.zip")
    if is_made:
        packed = Bundle.read(file)
    else:
        tell = lambda line: say(line, err=True)  # noqa: E731
        packed = with_trust(run, trust, lambda agreed: write(run, file, root=root, trust=agreed, tell=tell))
    address = None if upload is None else upload_bundle(file, upload)
    if as_json:
        print_json(packed.to_json())
        return
    print_bundle(file, packed)
    if address is not None:
        say(f"uploaded: {address}")


def print_bundle(file: Path, packed: Bundle) -> None:
    """Print what is in a bundle, file by file."""
    for name, member in packed.files.items():
        say(f"{member.sha256[:16]}  {member.bytes:>12,}  {name}")
    sets = counted(len(packed.names("tasks")), "task set")
    say(f"{file}: {sets} of {packed.name}, methods {', '.join(packed.methods)}")
    say(f"data: the folder '{packed.paths_from}'; license: {packed.license or 'unknown'}")
