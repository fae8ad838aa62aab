"""`shotproof explain features`: effects of contexts on features, and distances from a reference set."""

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
        list[Path], typer.Argument(metavar="FILES", help="Features and the catalog of their items, in any order.")
    ],
    clean_value: Annotated[
        str | None, typer.Option(help="Value that means no context. Known for catalogs by `shotproof mix`.")
    ] = None,
    context_column: ContextColumn = "context",
    split: Split = None,
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="Leave each item's own recording out of the clean mean.")
    ] = False,
    center: Annotated[bool, typer.Option("--center", help="First subtract the mean of all clean features.")] = False,
    level: Level = 0.95,
    against: Annotated[
        list[Path] | None,
        typer.Option(help="Reference features by the same encoder, and their catalog, to compare class by class."),
    ] = None,
    permutations: Annotated[
        int,
        typer.Option(
            min=0,
            max=limits.PERMUTATIONS.most,
            help="Permutations for the test of equal distributions, or 0 for no test.",
        ),
    ] = 200,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Figure of length and direction to write: .svg, or .html with the table."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure how contexts change the length and direction of features, and their distance from a reference set.

    Example: shotproof explain features features.parquet catalog.parquet --clean-value clean -o geometry.svg
    """
    from shotproof.analysis.context_effect import feature_change
    from shotproof.analysis.set_distances import feature_distances
    from shotproof.catalog.contexts import clean_context
    from shotproof.cli.console import print_json
    from shotproof.report.figures.feature_change_figure import write_geometry

    sorted_files, reference_files = (sort_files(paths, ("features", "catalog")) for paths in (files, against or []))
    if not sorted_files["features"] or bool(against) > bool(reference_files["features"]):
        raise InputError("expected features.parquet and its catalog, both among the files and with --against")
    if not sorted_files["catalog"] and (clean_value is not None or reference_files["catalog"] or split is not None):
        raise InputError("--clean-value, --split and a catalog in --against need the catalog of the features")
    items = read_one(sorted_files["catalog"], "catalog")
    items = items if split is None else items.in_split(split)
    if clean_value is None and not against and items is not None:
        clean_value = clean_context(items, context_column)
    if clean_value is None and not against:
        raise InputError("nothing to compare: use --clean-value with the catalog, or --against, or both")
    if output is not None and clean_value is None:
        raise InputError("--output draws clean and mixed items: use --clean-value with the catalog")
    encoder_features = read_one(sorted_files["features"], "features")
    change = distances = None
    if clean_value is not None:
        change = feature_change(
            encoder_features,
            items,
            clean_value,
            context_column=context_column,
            leave_out=leave_out,
            center=center,
            level=level,
        )
    if against:
        distances = feature_distances(
            encoder_features,
            read_one(reference_files["features"], "features"),
            catalog=items,
            reference_catalog=read_one(reference_files["catalog"], "catalog"),
            permutations=permutations,
        )
    names = {} if items is None else items.class_names
    if output is not None and change is not None:
        write_geometry(output, change, f"Length and direction of features by {encoder_features.name}", names)
    if as_json:
        measurements = {"change": change, "distance": distances}
        print_json(
            {
                "features": encoder_features.name,
                **{name: value.to_json() for name, value in measurements.items() if value},
            }
        )
        return
    if change is not None:
        _print_change(change, encoder_features, level, names)
    if distances is not None:
        _print_distances(distances, names)
    if output is not None:
        say(f"figure: {output}")


def _print_change(change: FeatureChange, features: Features, level: float, names: Mapping[str, str]) -> None:
    """Print the effect of mixing on features as a table and a sentence."""
    from shotproof.report.figures.feature_change_figure import COLUMNS, table_rows

    print_table(
        f"features by {features.name}, clean and mixed: means with {level:.0%} intervals over recordings, "
        "Mann-Whitney p from one value per recording; turn in degrees",
        COLUMNS,
        table_rows([*change.classes, change.overall], names),
    )
    overall = change.overall
    if overall.ratio is not None and overall.turn is not None:
        longer = "longer" if overall.ratio.mean > 1 else "shorter"
        say(
            f"Mixing makes features {abs(overall.ratio.mean - 1):.1%} {longer} "
            f"and turns them by {overall.turn.mean:.1f} degrees ({overall.pairs:,} mixed items with their "
            f"clean item); their cosine with the clean mean of their class changes by {overall.cosine.change.mean:+.3f}"
            + (
                f", compared with {overall.others.clean.mean:.3f} for the means of other classes."
                if overall.others
                else "."
            )
        )
    _print_left_out(change.left_out, "no clean or no mixed items")


def _print_distances(distances: Distances, names: Mapping[str, str]) -> None:
    """Print the distance of each class from the reference set."""
    from shotproof.comparison.numbers import p_value

    rows = [
        [
            "all" if distance.label is None else names.get(distance.label, distance.label),
            f"{distance.count:,}",
            f"{distance.reference_count:,}",
            f"{distance.mmd2:.4f}",
            f"{distance.mmd:.3f}",
            "-" if distance.p_value != distance.p_value else p_value(distance.p_value),
            f"{distance.centroid_cosine:.3f}",
        ]
        for distance in [*distances.classes, distances.overall]
    ]
    columns = ["class", "items", "reference", "MMD²", "MMD", "p", "centroid cosine"]
    print_table("distance from the reference set: unbiased MMD, RBF kernel with the median distance", columns, rows)
    _print_left_out(distances.left_out, "fewer than two items in one of the sets")


def _print_left_out(labels: list[str], reason: str) -> None:
    """Print the classes that were left out, and why."""
    if labels:
        listed = ", ".join(labels[:5]) + (", ..." if len(labels) > 5 else "")
        say(f"Left out {counted(len(labels), 'class', 'classes')} with {reason}: {listed}.")
