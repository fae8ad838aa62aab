"""`shotproof view`: all tasks of a run in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shotproof.cli.console import say
from shotproof.core import limits


def view(
    folder: Annotated[Path, typer.Argument(help="The folder of a run.")],
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=limits.PORT.most, help="On which port of this machine; 0: any that is free. Default: 8421."
        ),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
    export: Annotated[
        Path | None, typer.Option(help="Write the page as static files to this folder, and serve nothing.")
    ] = None,
) -> None:
    """Look at every task of a run in a browser: which queries were missed, by which methods, and why.

    The page is served to this machine alone, until Ctrl-C.

    Example: shotproof view birds-results/
    """
    from shotproof.pipeline.explorer import view as show

    show(folder, port=port, open_page=open_page, export=export, tell=say)
