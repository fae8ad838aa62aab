"""`shotproof compare`: comparison of classifiers, with named intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shotproof.cli.arguments import AsCsv, AsJson, Compared, Level, Trusted, files_of_kind, read_one
from shotproof.cli.console import say
from shotproof.core import limits
from shotproof.core.errors import InputError


def compare(
    files: Compared,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Page to write, e.g. report.html.")] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    figures: Annotated[Path | None, typer.Option(help="Folder to write all figures to, as SVG, PDF and PNG.")] = None,
    projection: Annotated[
        str, typer.Option(help="Projection of an iid task and its ood task on the page: pca, tsne or none.")
    ] = "pca",
    interval: Annotated[
        list[str] | None,
        typer.Option(
            help="sampler, depletion, images or classes; repeatable, statements use the first. Default: as in the run, "
            "or images if the files are given, and sampler."
        ),
    ] = None,
    level: Level = 0.95,
    metric: Annotated[
        str | None,
        typer.Option(help="Metric of statements, ranks and pairs: acc or wacc. Default: as in the run, or acc."),
    ] = None,
    holm: Annotated[bool, typer.Option(help="Apply Holm's correction for the number of pairs.")] = True,
    placebo: Annotated[
        bool | None,
        typer.Option(
            "--placebo/--no-placebo",
            help="Evaluate missing placebos, if the files are given. Default: as in the run, or yes.",
        ),
    ] = None,
    halvings: Annotated[
        int | None,
        typer.Option(
            min=limits.HALVINGS.least,
            max=limits.HALVINGS.most,
            help="Number of random halvings of the data. Default: 100, or fewer if these take long.",
        ),
    ] = None,
    trust: Trusted = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    as_latex: Annotated[bool, typer.Option("--latex", help="Print one LaTeX table per design.")] = False,
) -> None:
    """Compare classifiers: named intervals, ranges of ranks, all pairs, and losses.

    Example: shotproof compare run/ --interval sampler --interval images

    With a page that can be opened offline: shotproof compare run/ -o report.html
    """
    from shotproof.analysis.projection import check_projection
    from shotproof.cli.console import print_csv, print_json, say_text
    from shotproof.cli.results.print_comparison import print_comparison
    from shotproof.comparison.plot import save_figures
    from shotproof.core.tables import check_output
    from shotproof.pipeline.report import check_page_name
    from shotproof.pipeline.study import Study
    from shotproof.results.evaluated import check_metric
    from shotproof.stats.intervals import check_intervals, check_level

    # Invalid options are found before any file is read.
    if as_json + as_csv + as_latex > 1:
        raise InputError("--json, --csv and --latex: expected at most one of them")
    if interval is not None:
        check_intervals(interval)
    check_level(level)
    check_metric(metric or "acc")
    check_projection(projection)
    if output is not None:
        check_page_name(output, "--figures FOLDER")
        check_output(output)
    elif title is not None:
        raise InputError("--title needs a page: add -o report.html")
    if figures is not None:
        check_output(figures, folder=True)
    study = Study.of(files, halvings=halvings, trust=trust)
    comparison = study.compare(intervals=interval, level=level, metric=metric, correct=holm, placebo=placebo)
    if output is not None:
        similar = read_one(files_of_kind(files, "similarity"), "similarity")
        page_options = {"similarity": similar, "projection": projection}
        study.report(output, title=title, comparison=comparison, **page_options)
    if figures is not None:
        save_figures(comparison, figures)
    if as_json:
        print_json(comparison.to_json())
    elif as_csv:
        print_csv(comparison.to_csv())
    elif as_latex:
        say_text(comparison.to_latex())
    else:
        print_comparison(comparison)
        for name, path in {"report": output, "figures": figures}.items():
            if path is not None:
                say(f"{name}: {path}")
    if output is None and len(comparison.refused) == len(comparison.interval_names):
        raise InputError(f"no interval can be computed: {next(iter(comparison.refused.values()))}")
