"""`shotproof view`: the tasks of a run in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shotproof.cli.console import say
from shotproof.core import limits


def view(
    folder: Annotated[Path, typer.Argument(help="Run folder.")],
    port: Annotated[
        int | None,
        typer.Option(min=0, max=limits.PORT.most, help="Port on this machine, or 0 for any free port. Default: 8421."),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
    export: Annotated[
        Path | None, typer.Option(help="Write the page to this folder as static files instead of serving it.")
    ] = None,
) -> None:
    """Explore the tasks of a run in a browser: which queries each method misclassified, and why.

    The page is served only on this machine, until Ctrl-C.

    Example: shotproof view birds-results/
    """
    from shotproof.pipeline.explorer import view as show

    show(folder, port=port, open_page=open_page, export=export, log=say)
