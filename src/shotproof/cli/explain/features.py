"""`shotproof explain features`: what a context does to features, and how far features are from other ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shotproof.cli.arguments import AsJson, ContextColumn, Level, Split, read_one, sort_files
from shotproof.cli.console import print_table, say
from shotproof.core import limits
from shotproof.core.errors import InputError
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shotproof.analysis.context_effect import FeatureChange
    from shotproof.analysis.set_distances import Distances
    from shotproof.features.features import Features


def features(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILES", help="Features, and the catalog of their items, in any order.")
    ],
    clean_value: Annotated[
        str | None, typer.Option(help="The context that means none; of a catalog by `shotproof mix`, known.")
    ] = None,
    context_column: ContextColumn = "context",
    split: Split = None,
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="Leave an item's own recording out of the clean mean.")
    ] = False,
    center: Annotated[
        bool, typer.Option("--center", help="Take the mean of all clean features from every feature first.")
    ] = False,
    level: Level = 0.95,
    against: Annotated[
        list[Path] | None,
        typer.Option(help="Other features by the same encoder, and their catalog, to compare class by class."),
    ] = None,
    permutations: Annotated[
        int,
        typer.Option(
            min=0, max=limits.PERMUTATIONS.most, help="Permutations for the test of equal distributions; 0 for none."
        ),
    ] = 200,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Length against direction, .svg or .html (with the table).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say how a context changes the features' length and direction, and how far they are from a reference set.

    Example: shotproof explain features features.parquet catalog.parquet --clean-value clean -o geometry.svg
    """
    from shotproof.analysis.context_effect import feature_change
    from shotproof.analysis.set_distances import feature_distances
    from shotproof.catalog.contexts import clean_context
    from shotproof.cli.console import print_json
    from shotproof.report.figures.feature_change_figure import write_geometry

    own, others = (sort_files(paths, ("features", "catalog")) for paths in (files, against or []))
    if not own["features"] or bool(against) > bool(others["features"]):
        raise InputError("expected features.parquet, beside its catalog, and likewise with --against")
    if not own["catalog"] and (clean_value is not None or others["catalog"] or split is not None):
        raise InputError("--clean-value, --split and a catalog of --against need the catalog of the features")
    items = read_one(own["catalog"], "catalog")
    items = items if split is None else items.in_split(split)
    if clean_value is None and not against and items is not None:
        clean_value = clean_context(items, context_column)
    if clean_value is None and not against:
        raise InputError("nothing to compare: give the catalog and --clean-value, or --against, or all of them")
    if output is not None and clean_value is None:
        raise InputError("--output draws clean against mixed items: give the catalog and --clean-value")
    given = read_one(own["features"], "features")
    change = away = None
    if clean_value is not None:
        change = feature_change(
            given, items, clean_value, context_column=context_column, leave_out=leave_out, center=center, level=level
        )
    if against:
        away = feature_distances(
            given,
            read_one(others["features"], "features"),
            catalog=items,
            reference_catalog=read_one(others["catalog"], "catalog"),
            permutations=permutations,
        )
    names = {} if items is None else items.class_names
    if output is not None and change is not None:
        write_geometry(output, change, f"Length and direction of features by {given.name}", names)
    if as_json:
        made = {"change": change, "distance": away}
        print_json({"features": given.name, **{name: value.to_json() for name, value in made.items() if value}})
        return
    if change is not None:
        _print_change(change, given, level, names)
    if away is not None:
        _print_distances(away, names)
    if output is not None:
        say(f"figure: {output}")


def _print_change(found: FeatureChange, features: Features, level: float, names: Mapping[str, str]) -> None:
    """Tables 7 and 8, and what was found in a sentence."""
    from shotproof.report.figures.feature_change_figure import COLUMNS, table_rows

    print_table(
        f"features by {features.name}, clean and mixed: means with {level:.0%} intervals over recordings, "
        "Mann-Whitney p with one value per recording; turn in degrees",
        COLUMNS,
        table_rows([*found.classes, found.overall], names),
    )
    overall = found.overall
    if overall.ratio is not None and overall.turn is not None:
        longer = "longer" if overall.ratio.mean > 1 else "shorter"
        say(
            f"Mixing makes features {abs(overall.ratio.mean - 1):.1%} {longer} "
            f"and turns them by {overall.turn.mean:.1f} degrees ({overall.pairs:,} mixed items of which the clean one "
            f"is there); their cosine to the clean mean of their class changes by {overall.cosine.change.mean:+.3f}"
            + (f", where the other classes' means are at {overall.others.clean.mean:.3f}." if overall.others else ".")
        )
    _print_left_out(found.left_out, "clean and mixed items")


def _print_distances(found: Distances, names: Mapping[str, str]) -> None:
    from shotproof.comparison.numbers import p_value

    rows = [
        [
            "all" if one.label is None else names.get(one.label, one.label),
            f"{one.count:,}",
            f"{one.reference_count:,}",
            f"{one.mmd2:.4f}",
            f"{one.mmd:.3f}",
            "-" if one.p_value != one.p_value else p_value(one.p_value),
            f"{one.centroid_cosine:.3f}",
        ]
        for one in [*found.classes, found.overall]
    ]
    columns = ["class", "items", "reference", "MMD²", "MMD", "p", "centroid cosine"]
    print_table("against the reference set: unbiased MMD, RBF kernel at the median distance", columns, rows)
    _print_left_out(found.left_out, "two items or more in both sets")


def _print_left_out(labels: list[str], reason: str) -> None:
    if labels:
        shown = ", ".join(labels[:5]) + (", ..." if len(labels) > 5 else "")
        say(f"Left out, for want of {reason}: {counted(len(labels), 'class', 'classes')} ({shown}).")
