"""`shotproof compare`: classifiers side by side, with intervals that name what they cover."""

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
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A page to write, e.g. report.html.")] = None,
    title: Annotated[str | None, typer.Option(help="The page's title.")] = None,
    figures: Annotated[
        Path | None, typer.Option(help="A folder for all figures of the comparison, as SVG, PDF and PNG.")
    ] = None,
    projection: Annotated[
        str, typer.Option(help="On the page, how an iid task and its ood one are laid out: pca, tsne or none.")
    ] = "pca",
    interval: Annotated[
        list[str] | None,
        typer.Option(
            help="sampler, depletion, images or classes; may be repeated, the first counts. Default: as the run, or "
            "images if the files are there, and sampler."
        ),
    ] = None,
    level: Level = 0.95,
    metric: Annotated[
        str | None,
        typer.Option(help="What statements, ranks and pairs are by: acc or wacc. Default: as the run, or acc."),
    ] = None,
    holm: Annotated[bool, typer.Option(help="Correct for the number of pairs, after Holm.")] = True,
    placebo: Annotated[
        bool | None,
        typer.Option(
            "--placebo/--no-placebo",
            help="Evaluate placebos that the results lack, if the files are there. Default: as the run, or yes.",
        ),
    ] = None,
    halvings: Annotated[
        int | None,
        typer.Option(
            min=limits.HALVINGS.least,
            max=limits.HALVINGS.most,
            help="Random halvings of the data. Default: 100, or fewer if that takes long.",
        ),
    ] = None,
    trust: Trusted = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    as_latex: Annotated[bool, typer.Option("--latex", help="Print one LaTeX table per design.")] = False,
) -> None:
    """Compare classifiers: intervals that name what they cover, ranks as ranges, all pairs, and what is lost.

    Example: shotproof compare run/ --interval sampler --interval images

    With a page that opens offline: shotproof compare run/ -o report.html
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

    # What cannot be is told before any file is read.
    if as_json + as_csv + as_latex > 1:
        raise InputError("--json, --csv and --latex: expected one of them at most")
    if interval is not None:
        check_intervals(interval)
    check_level(level)
    check_metric(metric or "acc")
    check_projection(projection)
    if output is not None:
        check_page_name(output, "--figures FOLDER")
        check_output(output)
    elif title is not None:
        raise InputError("--title goes with a page: -o report.html")
    if figures is not None:
        check_output(figures, folder=True)
    study = Study.of(files, halvings=halvings, trust=trust)
    comparison = study.compare(intervals=interval, level=level, metric=metric, correct=holm, placebo=placebo)
    if output is not None:
        similar = read_one(files_of_kind(files, "similarity"), "similarity")
        shown = {"similarity": similar, "projection": projection}
        study.report(output, title=title, comparison=comparison, **shown)
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
    if output is None and len(comparison.refused) == len(comparison.covers):
        raise InputError(f"no interval can be given: {next(iter(comparison.refused.values()))}")
