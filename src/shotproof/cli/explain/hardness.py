"""`shotproof explain hardness`: why the tasks of a set are hard."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from shotproof.cli.arguments import AsCsv, AsJson, Level, OutputPage, files_of_kind
from shotproof.cli.console import print_table, say
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shotproof.analysis.explanation.explain import Explanation
    from shotproof.analysis.explanation.mismatch import Pooling
    from shotproof.stats.intervals import Interval
    from shotproof.tasks.taskset import TaskSet

SHOWN = 15  # attributes


def hardness(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES",
            help="A run's folder: its hardest task sets. Or a task set and the attributes of its items, with features "
            "for the query loss, results for other methods than ncc, the catalog for examples on the page.",
        ),
    ],
    against: Annotated[
        list[Path] | None,
        typer.Option(help="A task set to hold it against, best random tasks with the same queries; may be repeated."),
    ] = None,
    output: OutputPage = None,
    mismatch: Annotated[
        str, typer.Option(help="Between support and query: class, class by class, or pooled over a task.")
    ] = "class",
    level: Level = 0.95,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Say why tasks are hard: attributes whose share differs most between a class's support and its query.

    Example: shotproof explain hardness hard.parquet attributes.parquet features.parquet catalog.parquet
    --against random.parquet -o explain.html

    Of a run: shotproof explain hardness my-run/
    """
    from shotproof.analysis.explanation.explain import check_mismatch, explain_by_material, explain_hardest
    from shotproof.cli.console import print_json, print_records
    from shotproof.core.errors import InputError
    from shotproof.pipeline.read import read_inputs
    from shotproof.pipeline.report import write_explanations
    from shotproof.tasks.taskset import TaskSet

    check_mismatch(mismatch)
    kind = cast("Pooling", mismatch)
    explained_sets = files_of_kind(files, "tasks")
    inputs = read_inputs([path for path in files if path not in explained_sets])
    if not inputs.attributes:
        raise InputError("nothing says which words hold of which item: give attributes.parquet beside the task set")
    if len(explained_sets) > 1:
        raise InputError("expected one task set to explain: give those to hold it against with --against")
    if explained_sets:
        hard, *others = [TaskSet.read(path) for path in (*explained_sets, *(against or []))]
        explained = [explain_by_material(hard, others, inputs, mismatch=kind, level=level)]
    else:
        explained = explain_hardest(inputs, mismatch=kind, level=level)
        if not explained:
            raise InputError("the run has no tasks to explain: random tasks alone are not hard for a reason")
    explanations = [explanation for explanation, _ in explained]
    if output:
        write_explanations(output, explained, inputs.catalogs)
    if as_json:
        documents = [explanation.to_json() for explanation in explanations]
        print_json(documents[0] if len(documents) == 1 else documents)
    elif as_csv:
        print_records(list(_records(explanations)))
    else:
        for explanation in explanations:
            _print(explanation)
        if output:
            say(f"page: {output}")


def _print(explanation: Explanation) -> None:
    explained, *others = explanation.sets
    whose = "the support of a task, all classes together," if explanation.pooled else "a class's support"
    say(
        f"{counted(len(explained.tasks), f'{explained.name} task')}{_shape(explained.tasks)}; "
        f"{100 * explanation.level:.4g}% interval: sampler (covers new tasks from the same items), not corrected "
        "for the number of attributes",
        f"mismatch: |percentage of {whose} - of its query| that holds an attribute, points; by chance: if the "
        "same items were divided at random",
        "",
    )
    _print_sets(explanation)
    names = [one.name for one in others]
    columns = ["attribute", "in support", "in query", "mismatch", "by chance", *names]
    columns += [f"more than {explanation.reference_name}", "interval"]
    rows = []
    for one in explanation.attributes[:SHOWN]:
        own, excess = one.sets[0], explanation.excess(one)
        shares = [
            own.support,
            own.query,
            own.mismatch.mean,
            own.chance,
            *(task_set.mismatch.mean for task_set in one.sets[1:]),
        ]
        rows.append([one.attribute, *(f"{share:.1f}" for share in shares), *_signed(excess)])
    print_table("", columns, rows)
    if len(explanation.attributes) > SHOWN:
        say(f"  and {counted(len(explanation.attributes) - SHOWN, 'more attribute')} (--json, --csv)")
    say()
    _print_hardness(explanation)


def _shape(tasks: TaskSet) -> str:
    """E.g. `, 5-way 1-shot`, where the file says so."""
    from shotproof.results.origin import design_of

    return f", {design_of(tasks.record, tasks.record.way, tasks.record.query).shape}" if tasks.record.sampler else ""


def _print_sets(explanation: Explanation) -> None:
    """Return the mean over all attributes, and the ways, of each set."""
    rows = []
    for one in explanation.sets:
        difference = ["", ""] if one.difference is None else _signed(one.difference)
        ways = one.ways.tasks
        listed = f"{min(ways)}" if len(ways) == 1 else f"{min(ways)} to {max(ways)}, mean {one.ways.mean.mean:.1f}"
        paired = "" if one is explanation.sets[0] else "yes" if one.paired else "no"
        means = [f"{mean:.2f}" for mean in (one.overall.mean, one.chance)]
        rows.append([one.name, f"{len(one.tasks)}", listed, *means, *difference, paired])
    columns = ["tasks", "number", "ways", "mismatch", "by chance", f"{explanation.sets[0].name} has more", "interval"]
    print_table("", [*columns, "paired"], rows)
    for one in explanation.sets:
        if one.left_out:
            left_out = counted(one.left_out, "class", "classes")
            say(f"  {one.name}: {left_out} of tasks left out, of whose items nothing is known")
    say()


def _print_hardness(explanation: Explanation) -> None:
    rows = []
    for classifier in explanation.hardness():
        for name, one in classifier:
            means = [f"{one.accuracy.mean():.1f}", f"{one.loss.mean():.3g}"]
            correlation = "n/a" if math.isnan(one.correlation) else f"{one.correlation:.2f}"
            rows.append([name, explanation.encoder_names[one.encoder], one.method, *means, correlation])
    if rows:
        say("Accuracy against inverse query loss of nearest centroid, over tasks: Spearman's correlation")
        print_table("", ["tasks", "encoder", "method", "Acc", "loss", "Spearman"], rows)


def _signed(interval: Interval) -> list[str]:
    """Return a difference in points and its bounds."""
    from shotproof.comparison.numbers import bounds, points

    return [points(interval.mean), bounds(interval)]


def _records(explanations: list[Explanation]) -> Iterator[dict[str, object]]:
    """Give one record per attribute and task set."""
    for content in (explanation.to_json() for explanation in explanations):
        for attribute in content["attributes"]:
            for name, shares in attribute["sets"].items():
                compared = attribute["differences"].get(name, {"difference": None, "difference_interval": None})
                yield {"attribute": attribute["attribute"], "tasks": name, **_flat(shares), **_flat(compared)}


def _flat(values: dict[str, object]) -> dict[str, object]:
    """With the two ends of an interval in columns of their own."""
    flat: dict[str, object] = {}
    for key, value in values.items():
        if key.endswith("_interval"):
            start = key.removesuffix("_interval")
            low, high = value if isinstance(value, list) else (None, None)
            flat |= {f"{start}_low": low, f"{start}_high": high}
        else:
            flat[key] = value
    return flat
