"""`shotproof report`: the comparison on the terminal, and as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from shotproof.evaluation.sources import Design
    from shotproof.report.comparison import Comparison, Row


def report(
    results: Annotated[
        list[Path], typer.Argument(help="Results files, of any encoders, methods, designs and samplers.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path("report.html"),
    tasks: Annotated[
        list[Path] | None, typer.Option(help="A task file that results are on, for the gallery; may be repeated.")
    ] = None,
    catalog: Annotated[Path | None, typer.Option(help="The catalog, for the gallery's thumbnails.")] = None,
    interval: Annotated[
        list[str] | None,
        typer.Option(help="sampler, depletion, images or classes; may be repeated. Default: sampler, which is quick."),
    ] = None,
    features: Annotated[
        list[Path] | None, typer.Option(help="An encoder's features, for all intervals but sampler; may be repeated.")
    ] = None,
    attributes: Annotated[
        Path | None,
        typer.Option(help="The attributes, for images and classes where a sampler needs them."),
    ] = None,
    similarity: Annotated[
        Path | None, typer.Option(help="similarity.parquet: adds how near images are to their concepts and contexts.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes to re-evaluate in. Default: one a core.")] = 0,
    title: Annotated[str | None, typer.Option(help="The page's title.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Compare results on random and on biased tasks; print the table and write it as a page that opens offline.

    Example: shotproof report random.parquet fewstab.parquet --tasks fewstab-tasks.parquet
    --catalog catalog.parquet -o report.html
    """
    from shotproof.cli.compare import read_material
    from shotproof.cli.console import print_json
    from shotproof.evaluation.results import Results
    from shotproof.report.page import write_report
    from shotproof.similarity.similarity import Similarity

    material = read_material(tasks, catalog, features, attributes, workers)
    comparison = write_report(
        output,
        [Results.read(path) for path in results],
        tasks=material.tasks,
        catalog=material.catalog,
        title=title,
        intervals=interval,
        features=material.features,
        attributes=material.attributes,
        similarity=Similarity.read(similarity) if similarity else None,
        workers=material.workers,
    )
    if as_json:
        print_json(comparison.to_json())
    else:
        print_comparison(comparison)
        typer.echo(f"report: {output}")


def print_comparison(comparison: Comparison) -> None:
    """Print a table for each design and sampler, with a row a classifier, and what was found in a sentence or two."""
    from shotproof.cli.console import print_table
    from shotproof.report.wording import bounds, classifier, headline, metric, percent

    tables: dict[tuple[Design, str], list[Row]] = {}
    for row in comparison.rows:
        tables.setdefault((row.design, row.biased.sampler if row.biased else "fewstab"), []).append(row)
    for (design, sampler), rows in tables.items():
        cells = []
        for row in rows:
            sides = (row.reference, row.biased)
            accuracy = [percent(side.accuracy.mean) if side else "-" for side in sides]
            worst = [percent(side.worst.mean) if side else "-" for side in sides]
            gaps = [f"{percent(gap.mean)} {bounds(gap)}" if gap else "-" for gap in (row.accuracy_gap, row.gap)]
            cells.append([classifier(row.encoder, row.method), *accuracy, *worst, *gaps])
        first = next((row.reference.sampler for row in rows if row.reference), "random")
        metrics = [metric(name, side) for name in ("Acc", "wAcc") for side in (first, sampler)]
        columns = ["classifier", *metrics, "gap in Acc", "gap in wAcc"]
        print_table(f"{comparison.design_name(design)} tasks: percent, 95% sampler interval", columns, cells)
        typer.echo()
    for sentence in headline(comparison):
        typer.echo(sentence)
