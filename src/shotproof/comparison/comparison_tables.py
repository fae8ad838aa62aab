"""Comparison as tables for Arrow, pandas, CSV and JSON, which all have the same rows and columns.

| table | one row per |
|---|---|
| `estimates` | classifier, task set, quantity, metric and interval |
| `pairs` | pair of classifiers, likewise |
| `triples` | pair of classifiers and metric, if there are tasks with and without replacement |
| `data_sets` | as `estimates`, for tasks that several data sets have: each data set, and the mean over them |
| `seeds` | classifier, task set or gap, metric and seed, if there is more than one seed |
| `detectors` | pair of detectors whose attributes the same sampler used |
| `agreements` | task set that is measured against a reference |
| `costs` | planted attribute or context, classifier that loses accuracy, and task set |

The quantities are `accuracy` in percent; `gap`, `placebo` (the gap between the placebos) and `excess` (`gap` minus
`placebo`) in points; and `skill_lost`, the share of the accuracy above chance that is lost, in percent. All but the
first are relative to a `reference`. A rank is a range, from `rank_best` to `rank_worst`, by the row's metric and
interval. `variance`, `uncertainty`, `skew` and `task_variance` are what an interval is made from (`Interval`).
`conclusion` states whether accuracy is lost (+), gained (-) or neither is conclusive (0), corrected for all losses of
the comparison. Missing values (an interval that is not available, a size that varies) are null. Encoders have their
short names; `encoders` of the JSON has the full spelling of each.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from shotproof.comparison.comparison import Comparison
from shotproof.comparison.estimate_rows import EstimateRow, group_rows
from shotproof.core.errors import MissingExtra, UnknownName
from shotproof.core.plain_values import plain
from shotproof.results.evaluated import Classifier
from shotproof.results.origin import Design
from shotproof.stats.block import Block, Group, Loss
from shotproof.stats.intervals import Interval, meanings

if TYPE_CHECKING:
    import pandas as pd

_DESIGN = ("data_set", "split", "way", "shot", "query", "dial")
_TASKS = (*_DESIGN, "tasks", "digest", "reference", "axis", "detector")
_CLASSIFIER = ("classifier", "encoder", "method")
_NUMBER = (
    *("metric", "quantity", "interval", "level", "mean", "low", "high", "refused"),
    *("variance", "uncertainty", "skew", "task_variance"),
)
_SIZE = ("task_count", "seeds")
_ESTIMATES = (
    *(*_CLASSIFIER, *_NUMBER, "rank_best", "rank_worst", "rank_of", "conclusion", "deviation", "chance"),
    *(*_TASKS, *_SIZE),
)
_COLUMNS: dict[str, tuple[str, ...]] = {
    "estimates": _ESTIMATES,
    "pairs": ("a", "b", *_NUMBER, "conclusion", "p_value", "direct", "correlation", *_TASKS, *_SIZE),
    "triples": (
        *("a", "b", "metric", "closed", "open", "paired", "at_best_query", "inverted", "correlation"),
        *("best_query", "open_tasks", "best_tasks", *_TASKS, *_SIZE),
    ),
    "data_sets": _ESTIMATES,
    "seeds": (*_CLASSIFIER, "metric", "quantity", "seed", "mean", "mean_over_seeds", "deviation", *_TASKS),
    "detectors": (
        *("sampler", "first", "second", "classifiers", "correlation", "first_accuracy", "second_accuracy"),
        *_DESIGN,
    ),
    "agreements": (
        *("tasks", "reference", "classifiers", "accuracy_with_worst", "worst_with_worst", "average_drop"),
        *_DESIGN,
    ),
    "costs": (
        *(*_CLASSIFIER, "attribute", "cost", "low", "high", "conclusive", "planted_tasks", "planted_classes"),
        *("worst_class", "tasks", *_DESIGN),
    ),
}
_TYPES: dict[str, pa.DataType] = {
    **dict.fromkeys(("rank_best", "rank_worst", "rank_of", "way", "shot", "query", "task_count"), pa.int64()),
    **dict.fromkeys(("seed", "classifiers", "best_query", "open_tasks", "best_tasks"), pa.int64()),
    **dict.fromkeys(("planted_tasks", "planted_classes"), pa.int64()),
    **dict.fromkeys(("mean", "low", "high", "level", "variance", "uncertainty", "skew", "task_variance"), pa.float64()),
    **dict.fromkeys(("mean_over_seeds", "deviation", "chance", "dial", "p_value", "correlation"), pa.float64()),
    **dict.fromkeys(("first_accuracy", "second_accuracy", "accuracy_with_worst", "worst_with_worst"), pa.float64()),
    **dict.fromkeys(("average_drop", "cost"), pa.float64()),
    **dict.fromkeys(("inverted", "conclusive"), pa.bool_()),
    "seeds": pa.list_(pa.int64()),
}


def to_arrow(comparison: Comparison, table: str) -> pa.Table:
    """Build a table; its columns and types do not depend on its content.

    Raises:
        UnknownName: if there is no such table.
    """
    if table not in _COLUMNS:
        raise UnknownName("table", table, _COLUMNS)
    schema = pa.schema([(name, _TYPES.get(name, pa.string())) for name in _COLUMNS[table]])
    return pa.Table.from_pylist([plain(row, complete=True) for row in _ROWS[table](comparison)], schema)


def to_pandas(comparison: Comparison, table: str = "estimates") -> pd.DataFrame:
    """Build a table as a data frame.

    Raises:
        UnknownName: if there is no such table.
        MissingExtra: if pandas is not installed.
    """
    try:
        import pandas  # noqa: F401
    except ImportError as error:
        raise MissingExtra("a data frame", "pandas") from error
    return to_arrow(comparison, table).to_pandas()


def to_csv(comparison: Comparison) -> str:
    """Write all nonempty tables as CSV, each with a heading, with an empty line between; spaces separate seeds."""
    texts = []
    for name, columns in _COLUMNS.items():
        rows = to_arrow(comparison, name).to_pylist()
        if rows:
            text = io.StringIO()
            writer = csv.DictWriter(text, columns, lineterminator="\n")
            writer.writeheader()
            for row in rows:
                if row.get("seeds") is not None:
                    row["seeds"] = " ".join(str(seed) for seed in row["seeds"] if seed is not None)
                writer.writerow(row)
            texts.append(text.getvalue())
    return "\n".join(texts)


def to_json(comparison: Comparison) -> dict[str, Any]:
    """Return everything as plain values: what was compared, the findings as sentences, and every table."""
    return {
        "unit": "percent points",
        "summary": comparison.summary(),
        "verdict": comparison.verdict(),
        "level": comparison.level,
        "metric": comparison.metric,
        "holm": comparison.corrected,
        "tasks": [
            {
                **{"sampler": group.label, "tasks": group.tasks, "digest": group.digests[0], "digests": group.digests},
                **{"seeds": group.seeds, "detector": group.detector, **_design(block.design)},
            }
            for block in comparison.blocks
            for group in block.groups
        ],
        "encoders": {name: spelling for spelling, name in comparison.encoder_names.items()},
        "covers": {name: meanings(comparison.medium)[name] for name in comparison.interval_names},
        "refused": comparison.refused,
        "notes": comparison.notes,
        "designs": [
            {
                **{"name": comparison.design_name(block.design), "catalog": block.design.catalog},
                **_design(block.design),
                **{"references": {loss.label: loss.reference for loss in block.losses}, "refused": block.refused},
            }
            for block in comparison.blocks
        ],
        **{name: to_arrow(comparison, name).to_pylist() for name in _COLUMNS},
    }


Rows = Iterator[dict[str, Any]]


def _estimate_rows(comparison: Comparison) -> Rows:
    return (_estimate(comparison, row) for row in comparison.all_rows)


def _estimate(comparison: Comparison, row: EstimateRow) -> dict[str, Any]:
    rank = {} if row.rank is None else {f"rank_{name}": value for name, value in asdict(row.rank).items()}
    names = {**_classifier(comparison, row.classifier), **_design(row.design)}
    return {**vars(row), **names, **_number(row.interval), **rank}


def _pair_rows(comparison: Comparison) -> Rows:
    for block, group, loss in _groups(comparison):
        tasks = _tasks(block, group, loss)
        for (metric, _), pairs in group.pairs.items():
            for pair in pairs:
                a, b = comparison.pair_names(pair)
                yield {
                    **{"a": a, "b": b, "metric": metric, "quantity": group.quantity, **_number(pair.interval)},
                    **{"conclusion": pair.conclusion, "direct": pair.direct},
                    **{"p_value": None if pair.interval.refused else pair.p_value, **tasks},
                    **{"correlation": None if group.against else group.correlation(pair, metric)},
                }


def _triple_rows(comparison: Comparison) -> Rows:
    for block, group, loss in _groups(comparison):
        for metric, triples in group.triples.items():
            for triple, pair in zip(triples.pairs, group.pairs[metric, "sampler"], strict=True):
                a, b = comparison.pair_names(pair)
                yield {
                    **{"a": a, "b": b, "metric": metric, "closed": triple.closed, "open": triple.open},
                    **{"paired": triple.paired, "at_best_query": triple.at_best, "inverted": triple.inverted},
                    **{"correlation": group.correlation(pair, metric), "best_query": triples.best_query},
                    **{"open_tasks": triples.tasks, "best_tasks": triples.best_tasks, **_tasks(block, group, loss)},
                }


def _data_set_rows(comparison: Comparison) -> Rows:
    for across in comparison.data_sets:
        for name, group in across.rows:
            design = replace(across.designs[0], data_set=name, split=None)
            yield from (_estimate(comparison, row) for row in group_rows(design, group))


def _seed_rows(comparison: Comparison) -> Rows:
    for block, group, loss in _groups(comparison):
        for row in group.rows:
            for metric, by_seed in row.seeds.items():
                for seed, mean in by_seed.items() if len(by_seed) > 1 else ():
                    yield {
                        **_classifier(comparison, row.classifier),
                        **{"metric": metric, "quantity": group.quantity, "seed": seed, "mean": mean},
                        **{"mean_over_seeds": math.fsum(by_seed.values()) / len(by_seed)},
                        **{"deviation": row.spread(metric), **_tasks(block, group, loss)},
                    }


def _detector_rows(comparison: Comparison) -> Rows:
    for block in comparison.blocks:
        for agreement in block.detectors:
            first, second = agreement.accuracy or (None, None)
            yield {
                **{"sampler": agreement.sampler, "first": agreement.detectors[0], "second": agreement.detectors[1]},
                **{"classifiers": agreement.classifiers, "correlation": agreement.correlation},
                **{"first_accuracy": first, "second_accuracy": second, **_design(block.design)},
            }


def _agreement_rows(comparison: Comparison) -> Rows:
    for agreement in comparison.agreements:
        yield {**asdict(agreement), "tasks": agreement.label, **_design(agreement.design)}


def _cost_rows(comparison: Comparison) -> Rows:
    for (design, label), by_classifier in comparison.costs.items():
        for classifier, costs in by_classifier.items():
            for cost in costs.costs:
                yield {
                    **{"attribute": cost.name, "cost": cost.cost.mean, "low": cost.cost.low, "high": cost.cost.high},
                    **{"conclusive": cost.is_conclusive, "planted_tasks": cost.tasks},
                    **{"planted_classes": cost.labels, "worst_class": cost.worst_label, "tasks": label},
                    **_design(design),
                    **_classifier(comparison, classifier),
                }


_ROWS = {
    **{"estimates": _estimate_rows, "pairs": _pair_rows, "triples": _triple_rows, "data_sets": _data_set_rows},
    **{"seeds": _seed_rows, "detectors": _detector_rows, "agreements": _agreement_rows, "costs": _cost_rows},
}


def _groups(comparison: Comparison) -> Iterator[tuple[Block, Group, Loss | None]]:
    """Yield all measured groups: accuracies, then losses."""
    for block in comparison.blocks:
        yield from ((block, group, None) for group in block.groups)
        yield from ((block, group, loss) for loss in block.losses for group in loss.groups)


def _tasks(block: Block, group: Group, loss: Loss | None) -> dict[str, Any]:
    """Return the columns of the task set of a number, and of its reference."""
    digest = block.group(group.against or group.label).digests[0]
    size = {"axis": loss and loss.axis, "task_count": group.tasks, "seeds": group.seeds}
    return {**_design(block.design), **_names(group), "digest": digest, "detector": group.detector, **size}


def _names(group: Group) -> dict[str, str | None]:
    return {"tasks": group.against or group.label, "reference": group.label if group.against else None}


def _design(design: Design) -> dict[str, Any]:
    return {name: getattr(design, name) for name in _DESIGN}


def _classifier(comparison: Comparison, classifier: Classifier) -> dict[str, str]:
    parts = {"encoder": comparison.encoder_names[classifier.encoder], "method": classifier.method}
    return {"classifier": comparison.classifier_name(classifier), **parts}


def _number(interval: Interval) -> dict[str, Any]:
    return {**vars(interval), "interval": interval.covers}
