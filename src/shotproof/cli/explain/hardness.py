"""`shotproof explain hardness`: attributes that make the tasks of a set hard."""

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

MAX_ATTRIBUTES = 15


def hardness(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES",
            help="A run folder, to explain its hardest task sets. Or a task set and the attributes of its items; "
            "features add the query loss, results methods other than ncc, the catalog examples on the page.",
        ),
    ],
    against: Annotated[
        list[Path] | None,
        typer.Option(help="Task set to compare with, preferably random tasks with the same queries; repeatable."),
    ] = None,
    output: OutputPage = None,
    mismatch: Annotated[
        str,
        typer.Option(
            help="Compare support and query within each class (class) or over all classes of a task (pooled)."
        ),
    ] = "class",
    level: Level = 0.95,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Explain why tasks are hard: attributes whose share differs most between support and query of a class.

    Example: shotproof explain hardness hard.parquet attributes.parquet features.parquet catalog.parquet
    --against random.parquet -o explain.html

    For a run: shotproof explain hardness my-run/
    """
    from shotproof.analysis.explanation.explain import check_mismatch, explain_from_inputs, explain_hardest
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
        raise InputError("no attributes given: add the attributes.parquet of the items")
    if len(explained_sets) > 1:
        raise InputError("expected one task set to explain; add those to compare with by --against")
    if explained_sets:
        hard, *others = [TaskSet.read(path) for path in (*explained_sets, *(against or []))]
        explained = [explain_from_inputs(hard, others, inputs, mismatch=kind, level=level)]
    else:
        explained = explain_hardest(inputs, mismatch=kind, level=level)
        if not explained:
            raise InputError(
                "the run has no tasks to explain: it has only random tasks, which are not built to be hard"
            )
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
            _print_explanation(explanation)
        if output:
            say(f"page: {output}")


def _print_explanation(explanation: Explanation) -> None:
    """Print the mismatch of each task set and attribute, and the hardness for each classifier."""
    explained, *others = explanation.sets
    support = "a task's support, all classes together," if explanation.pooled else "a class's support"
    say(
        f"{counted(len(explained.tasks), f'{explained.name} task')}{_format_shape(explained.tasks)}; "
        f"{100 * explanation.level:.4g}% interval: sampler (covers new tasks from the same items), not corrected "
        "for the number of attributes",
        f"mismatch: |percentage of {support} with an attribute - percentage of its query|, points; by chance: if the "
        "same items were divided at random",
        "",
    )
    _print_sets(explanation)
    names = [task_set.name for task_set in others]
    columns = ["attribute", "in support", "in query", "mismatch", "by chance", *names]
    columns += [f"more than {explanation.reference_name}", "interval"]
    rows = []
    for shares in explanation.attributes[:MAX_ATTRIBUTES]:
        explained_shares, excess = shares.sets[0], explanation.excess(shares)
        percentages = [
            explained_shares.support,
            explained_shares.query,
            explained_shares.mismatch.mean,
            explained_shares.chance,
            *(task_set.mismatch.mean for task_set in shares.sets[1:]),
        ]
        rows.append([shares.attribute, *(f"{percentage:.1f}" for percentage in percentages), *_signed(excess)])
    print_table("", columns, rows)
    if len(explanation.attributes) > MAX_ATTRIBUTES:
        say(f"  and {counted(len(explanation.attributes) - MAX_ATTRIBUTES, 'more attribute')} (--json, --csv)")
    say()
    _print_hardness(explanation)


def _format_shape(tasks: TaskSet) -> str:
    """Return the shape of the tasks, such as `, 5-way 1-shot`, if the file has it."""
    from shotproof.results.origin import design_of

    return f", {design_of(tasks.record, tasks.record.way, tasks.record.query).shape}" if tasks.record.sampler else ""


def _print_sets(explanation: Explanation) -> None:
    """Print the mean over all attributes, and the ways, of each task set."""
    rows = []
    for task_set in explanation.sets:
        difference = ["", ""] if task_set.difference is None else _signed(task_set.difference)
        ways = task_set.ways.tasks
        listed = f"{min(ways)}" if len(ways) == 1 else f"{min(ways)} to {max(ways)}, mean {task_set.ways.mean.mean:.1f}"
        paired = "" if task_set is explanation.sets[0] else "yes" if task_set.paired else "no"
        means = [f"{mean:.2f}" for mean in (task_set.overall.mean, task_set.chance)]
        rows.append([task_set.name, f"{len(task_set.tasks)}", listed, *means, *difference, paired])
    columns = ["tasks", "number", "ways", "mismatch", "by chance", f"{explanation.sets[0].name} has more", "interval"]
    print_table("", [*columns, "paired"], rows)
    for task_set in explanation.sets:
        if task_set.left_out:
            left_out = counted(task_set.left_out, "class", "classes")
            say(f"  {task_set.name}: {left_out} of tasks left out, because no attributes of their items are known")
    say()


def _print_hardness(explanation: Explanation) -> None:
    """Print accuracy, query loss and their correlation for each classifier and task set."""
    rows = []
    for classifier in explanation.hardness():
        for name, hardness in classifier:
            means = [f"{hardness.accuracy.mean():.1f}", f"{hardness.loss.mean():.3g}"]
            correlation = "n/a" if math.isnan(hardness.correlation) else f"{hardness.correlation:.2f}"
            rows.append([name, explanation.encoder_names[hardness.encoder], hardness.method, *means, correlation])
    if rows:
        say("Spearman's correlation over tasks between accuracy and the inverse query loss of nearest centroid")
        print_table("", ["tasks", "encoder", "method", "Acc", "loss", "Spearman"], rows)


def _signed(interval: Interval) -> list[str]:
    """Format a difference in points and its bounds."""
    from shotproof.comparison.numbers import bounds, points

    return [points(interval.mean), bounds(interval)]


def _records(explanations: list[Explanation]) -> Iterator[dict[str, object]]:
    """Yield one record per attribute and task set."""
    for content in (explanation.to_json() for explanation in explanations):
        for attribute in content["attributes"]:
            for name, shares in attribute["sets"].items():
                difference = attribute["differences"].get(name, {"difference": None, "difference_interval": None})
                yield {
                    "attribute": attribute["attribute"],
                    "tasks": name,
                    **_split_intervals(shares),
                    **_split_intervals(difference),
                }


def _split_intervals(values: dict[str, object]) -> dict[str, object]:
    """Return the values with the bounds of intervals in separate columns."""
    flat: dict[str, object] = {}
    for key, value in values.items():
        if key.endswith("_interval"):
            start = key.removesuffix("_interval")
            low, high = value if isinstance(value, list) else (None, None)
            flat |= {f"{start}_low": low, f"{start}_high": high}
        else:
            flat[key] = value
    return flat
