"""The flags by which commands that compare results are given files, and are told how to compare."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from shotproof.analysis.inputs import Inputs

ResultsFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="RESULTS...",
        help="Results files, or folders of runs, of any data sets, encoders, methods and samplers.",
    ),
]
TaskFiles = Annotated[
    list[Path] | None,
    typer.Option(
        help="A task file of the results, for placebos, all intervals but sampler, and a page's gallery; may be "
        "repeated."
    ),
]
CatalogFiles = Annotated[
    list[Path] | None,
    typer.Option(help="A catalog, for the same; may be repeated."),
]
FeatureFiles = Annotated[
    list[Path] | None,
    typer.Option(help="An encoder's features, for placebos and all intervals but sampler; may be repeated."),
]
AttributeFiles = Annotated[
    list[Path] | None,
    typer.Option(help="Attributes, where a sampler needs them, and for why tasks are hard; may be repeated."),
]
IntervalNames = Annotated[
    list[str] | None,
    typer.Option(
        help="sampler, depletion, images or classes; may be repeated, the first counts. Default: images where the "
        "files are there, and sampler."
    ),
]
MetricName = Annotated[str, typer.Option(help="What statements, ranks and pairs are by: acc or wacc.")]
WithPlacebo = Annotated[
    bool, typer.Option(help="Draw and evaluate placebos where the results lack them and the files are there.")
]

Trusted = Annotated[
    bool,
    typer.Option("--trust", help="Import code, and read files elsewhere, that the results and task sets name."),
]


def read_files(paths: Sequence[Path], *further: Sequence[Path] | None, **settings: Any) -> Inputs:
    """Read files and folders of runs; `settings` are those of `read_inputs`."""
    from shotproof.pipeline.read import read_inputs

    return read_inputs([*paths, *(path for listed in further for path in listed or ())], **settings)
