"""The flags that every command which computes has: none of them changes a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from shotproof.core.limits import BATCH, WORKERS

if TYPE_CHECKING:
    from shotproof.core.runtime.runtime import Runtime

PANEL = "Runtime (changes no result)"
NO_CACHE = "none"

Workers = Annotated[
    int | None,
    typer.Option(
        min=WORKERS.least,
        max=WORKERS.most,
        help="Processes. Default: as many as pay off.",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]
Device = Annotated[
    str | None,
    typer.Option(help="cpu, cuda:0, or cuda for all GPUs. Default: GPUs if any.", rich_help_panel=PANEL),
]
Cache = Annotated[
    str | None,
    typer.Option(
        help="Folder that keeps what was computed once; none keeps nothing. Default: ~/.cache/shotproof.",
        rich_help_panel=PANEL,
    ),
]
Progress = Annotated[
    bool | None,
    typer.Option("--progress/--no-progress", help="Bars. Default: on a terminal.", rich_help_panel=PANEL),
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Name every file that is made or up to date.", rich_help_panel=PANEL)
]
BatchSize = Annotated[
    int | None,
    typer.Option(
        "--batch-size",
        min=BATCH.least,
        max=BATCH.most,
        help="Items that a network takes at once.",
        rich_help_panel=PANEL,
    ),
]
EngineName = Annotated[
    str | None,
    typer.Option(
        "--engine", help="Where work is done: local, ray, ray:HOST:PORT, ray://HOST:PORT.", rich_help_panel=PANEL
    ),
]


def make_runtime(
    workers: int | None = None,
    device: str | None = None,
    cache: str | None = None,
    progress: bool | None = None,
    engine: str | None = None,
    base: Runtime | None = None,
    *,
    batch_size: int | None = None,
) -> Runtime:
    """The current runtime (or `base`) with what flags say."""
    from dataclasses import replace

    from shotproof.core.runtime.runtime import current_runtime

    given: dict[str, Any] = {"workers": workers, "device": device, "cache": cache, "progress": progress}
    given |= {"engine": engine, "batch_size": batch_size}
    changes = {name: value for name, value in given.items() if value is not None}
    if cache == NO_CACHE:
        changes["cache"] = None
    return replace(base or current_runtime(), **changes)
