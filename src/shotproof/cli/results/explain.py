"""`shotproof explain`: why the tasks of a set are hard."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from shotproof.cli.console import say
from shotproof.cli.runtime_options import Cache, Device, EngineName, Progress, Workers, make_runtime
from shotproof.core import limits
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from shotproof.analysis.explanation.explain import Explanation
    from shotproof.analysis.explanation.mismatch import Pooling
    from shotproof.stats.intervals import Interval
    from shotproof.tasks.taskset import TaskSet


def explain(
    tasks: Annotated[
        list[Path],
        typer.Argument(help="The task set to explain, tasks.parquet; or a run's folder: its hardest set(s)."),
    ],
    against: Annotated[
        list[Path] | None,
        typer.Option(help="A task set to hold it against, best random tasks with the same queries; may be repeated."),
    ] = None,
    attributes: Annotated[
        list[Path] | None, typer.Option(help="The words of each item, attributes.parquet, where no folder has them.")
    ] = None,
    features: Annotated[
        list[Path] | None,
        typer.Option("--features", "-f", help="The items' features, for accuracy against inverse loss."),
    ] = None,
    results: Annotated[
        list[Path] | None,
        typer.Option(help="Results on these tasks, whose accuracy to take instead of ncc's; may be repeated."),
    ] = None,
    catalog: Annotated[Path | None, typer.Option(help="The catalog, for example images in the page.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A page to write, with figures and examples.")
    ] = None,
    mismatch: Annotated[
        str, typer.Option(help="Between support and query: class, class by class, or pooled over a task.")
    ] = "class",
    top: Annotated[int, typer.Option(min=1, max=limits.MOST, help="Attributes to print.")] = 15,
    level: Annotated[float, typer.Option(help="The level of the intervals.")] = 0.95,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON, in points.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print all attributes as CSV, in points.")] = False,
    workers: Workers = None,
    device: Device = None,
    cache: Cache = None,
    progress: Progress = None,
    engine: EngineName = None,
) -> None:
    """Say why tasks are hard: attributes whose share differs most between a class's support and its query.

    Example: shotproof explain hard.parquet --attributes attributes.parquet --against random.parquet
    --features features.parquet --catalog catalog.parquet -o explain.html

    Of a run: shotproof explain my-run/
    """
    from shotproof.analysis.explanation.explain import check_mismatch, explain_by_material, explain_hardest
    from shotproof.cli.console import print_csv, print_json
    from shotproof.core.errors import InputError
    from shotproof.core.storage.files import is_folder
    from shotproof.pipeline.read import read_inputs
    from shotproof.pipeline.report import write_explanations
    from shotproof.tasks.taskset import TaskSet

    check_mismatch(mismatch)
    kind = cast("Pooling", mismatch)
    runtime = make_runtime(workers, device, cache, progress, engine)
    files = [path for path in tasks if not is_folder(path)]
    folders = [path for path in tasks if is_folder(path)]
    beside = [*([catalog] if catalog else []), *(features or []), *(attributes or [])]
    inputs = read_inputs([*folders, *(results or []), *beside])
    if not inputs.attributes:
        raise InputError("nothing says which words hold of which item: give --attributes attributes.parquet")
    if files:
        sets = [TaskSet.read(path) for path in (*files, *(against or []))]
        explained = [explain_by_material(sets[0], sets[1:], inputs, mismatch=kind, level=level, runtime=runtime)]
    else:
        explained = explain_hardest(inputs, mismatch=kind, level=level, runtime=runtime)
        if not explained:
            raise InputError("the run has no tasks to explain: random tasks alone are not hard for a reason")
    explanations = [explanation for explanation, _ in explained]
    if output:
        write_explanations(output, explained, inputs.catalogs)
    if as_json:
        documents = [one.to_json() for one in explanations]
        print_json(documents[0] if len(documents) == 1 else documents)
    elif as_csv:
        print_csv(_csv(explanations))
    else:
        for explanation in explanations:
            _print(explanation, top)
        if output:
            say(f"page: {output}")


def _print(explanation: Explanation, top: int) -> None:
    from shotproof.cli.console import print_table

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
    for one in explanation.attributes[:top]:
        own, excess = one.sets[0], explanation.excess(one)
        shares = [
            own.support,
            own.query,
            own.mismatch.mean,
            own.chance,
            *(given.mismatch.mean for given in one.sets[1:]),
        ]
        rows.append([one.attribute, *(f"{share:.1f}" for share in shares), *_signed(excess)])
    print_table("", columns, rows)
    if len(explanation.attributes) > top:
        say(f"  and {counted(len(explanation.attributes) - top, 'more attribute')} (--top, --json, --csv)")
    say()
    _print_hardness(explanation)


def _shape(tasks: TaskSet) -> str:
    """E.g. `, 5-way 1-shot`, where the file says so."""
    from shotproof.results.origin import design_of

    return f", {design_of(tasks.record, tasks.record.way, tasks.record.query).shape}" if tasks.record.sampler else ""


def _print_sets(explanation: Explanation) -> None:
    """The mean over all attributes, and the ways, of each set."""
    from shotproof.cli.console import print_table

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
    from shotproof.cli.console import print_table

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
    """A difference in points and its bounds."""
    from shotproof.comparison.numbers import bounds, points

    return [points(interval.mean), bounds(interval)]


def _csv(explanations: list[Explanation]) -> str:
    """One row per attribute and task set."""
    import csv
    import io

    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    for content in (one.to_json() for one in explanations):
        for one in content["attributes"]:
            for name, shares in one["sets"].items():
                compared = one["differences"].get(name, {"difference": None, "difference_interval": None})
                row = {"attribute": one["attribute"], "tasks": name, **_flat(shares), **_flat(compared)}
                if not written.tell():
                    writer.writerow(row)
                writer.writerow(row.values())
    return written.getvalue()


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
