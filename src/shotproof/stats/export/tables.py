"""A comparison as tidy tables: for JSON, CSV, Arrow and pandas. Accuracies are in percent, differences in points.

| table | one row per |
|---|---|
| `methods` | classifier, task set, metric and interval |
| `gaps` | classifier, task set with its reference, quantity, metric and interval |
| `pairs`, `gap_pairs` | pair of classifiers, likewise |
| `triples` | pair of classifiers and metric, where there are tasks with and without replacement |
| `data_sets` | data set, classifier, task set or what is lost, metric and interval, and the mean over data sets |
| `seeds` | classifier, task set or gap, metric and seed, where there is more than one seed |
| `detectors` | pair of detectors whose attributes one sampler was given |
| `agreements` | task set that is measured against a reference |
| `costs` | planted attribute or context, classifier that loses something, and task set |

The quantities are `gap`, `placebo` (the gap between the placebos) and `excess` (the one minus the other) in points, and
`skill`, the share of the accuracy above chance that is lost, in percent. A rank is a range, from `rank_best` to
`rank_worst`, by the row's own metric and interval. What is not there (a refused interval, a size that varies) is null.
An encoder is told by its short name; `encoders` of the JSON has the whole spelling of each.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from shotproof.core.errors import MissingExtra, UnknownName
from shotproof.evaluation.evaluated import METRICS, Classifier
from shotproof.evaluation.origin import Design
from shotproof.stats.block import Block, Group
from shotproof.stats.comparison import Comparison
from shotproof.stats.intervals import Interval, meanings
from shotproof.stats.ranks import RankRange
from shotproof.stats.triples import Fates

if TYPE_CHECKING:
    import pandas as pd

Rows = list[dict[str, Any]]

_DESIGN = ("data_set", "split", "way", "shot", "query", "dial")
_WHERE = ("tasks", *_DESIGN, "detector", "seeds", "tasks_in_all")
_CLASSIFIER = ("encoder", "spelling")
_RANK = ("rank_best", "rank_worst")
_METHODS = ("method", "metric", "mean", *_RANK, "interval", "low", "high", "refused", *_WHERE, *_CLASSIFIER)
_PAIRS = (
    *("a", "b", "metric", "interval", "difference", "low", "high", "conclusion", "p_value", "refused", *_WHERE),
    "direct",
)
_LOST = ("quantity", "axis", "chance")
_COLUMNS: dict[str, tuple[str, ...]] = {
    "methods": _METHODS,
    "pairs": (*_PAIRS, "correlation"),
    "triples": (
        *("a", "b", "metric", "closed", "open", "paired", "at_best_query", "inverted", "correlation"),
        *("best_query", "open_tasks", "best_tasks", *_WHERE),
    ),
    "gaps": (*_METHODS, *_LOST),
    "gap_pairs": (*_PAIRS, "quantity"),
    "data_sets": (
        *("data_set", "method", "metric", "mean", *_RANK, "interval", "low", "high", "refused", "tasks", "quantity"),
        *("way", "shot", "query", "dial", "tasks_in_all", *_CLASSIFIER),
    ),
    "seeds": ("method", "metric", "tasks", "seed", "mean", "mean_over_seeds", "deviation", *_DESIGN, *_CLASSIFIER),
    "detectors": (
        *("sampler", "first", "second", "classifiers", "correlation", "first_accuracy", "second_accuracy"),
        *_DESIGN,
    ),
    "agreements": (
        *("tasks", "reference", "classifiers", "accuracy_with_worst", "worst_with_worst", "average_drop"),
        *_DESIGN,
    ),
    "costs": (
        *("method", "attribute", "cost", "low", "high", "conclusive", "planted_tasks", "planted_classes"),
        *("worst_class", "tasks", *_DESIGN, *_CLASSIFIER),
    ),
}
_WHOLE = (
    *(*_RANK, "way", "shot", "query", "tasks_in_all", "seed", "classifiers", "best_query", "open_tasks"),
    *("best_tasks", "inverted", "conclusive", "planted_tasks", "planted_classes"),
)
_TEXT = (
    *("method", "metric", "interval", "refused", "tasks", "data_set", "split", "detector", "seeds", "encoder"),
    *("spelling", "a", "b", "conclusion", "sampler", "first", "second", "reference", "quantity", "axis"),
    *("direct", "closed", "open", "paired", "at_best_query", "attribute", "worst_class"),
)


def tables(comparison: Comparison) -> dict[str, Rows]:
    """Every tidy table, by name, as rows of plain values; seeds are a list.

    Example:
        >>> from shotproof.stats.comparison import Comparison
        >>> list(tables(Comparison(0.95, "acc", True, ("sampler",), [])))
        ['methods', 'pairs', 'triples', 'gaps', 'gap_pairs', 'data_sets', 'seeds', 'detectors', 'agreements', 'costs']
    """
    found: dict[str, Rows] = {name: [] for name in _COLUMNS}
    for block in comparison.blocks:
        for group in block.groups:
            found["methods"] += _classifier_rows(comparison, block, group)
            found["pairs"] += _pair_rows(comparison, block, group)
            found["triples"] += _triple_rows(comparison, block, group)
        for loss in block.losses:
            for group in loss.groups:
                found["gaps"] += (
                    {**row, "quantity": group.quantity, "axis": loss.axis, "chance": loss.chance[row["metric"]]}
                    for row in _classifier_rows(comparison, block, group)
                )
                found["gap_pairs"] += (
                    {**row, "quantity": group.quantity} for row in _pair_rows(comparison, block, group)
                )
        for group in [*block.groups, *block.gaps]:
            found["seeds"] += _seed_rows(comparison, block, group)
        found["detectors"] += _detector_rows(block)
        found["agreements"] += _agreement_rows(comparison, block)
    found["data_sets"] += _data_set_rows(comparison)
    found["costs"] += _cost_rows(comparison)
    return found


def to_arrow(comparison: Comparison, table: str) -> pa.Table:
    """A tidy table as an Arrow table, with the same columns and types whatever is in it.

    Raises:
        UnknownName: there is no such table.
    """
    if table not in _COLUMNS:
        raise UnknownName("table", table, _COLUMNS)
    schema = pa.schema([(name, _type(name)) for name in _COLUMNS[table]])
    return pa.Table.from_pylist([_one_line(row) for row in tables(comparison)[table]], schema)


def to_pandas(comparison: Comparison, table: str = "methods") -> pd.DataFrame:
    """A tidy table as a data frame.

    Raises:
        UnknownName: there is no such table.
        MissingExtra: pandas is not installed.
    """
    try:
        import pandas  # noqa: F401
    except ImportError as error:
        raise MissingExtra("a data frame", "pandas") from error
    return to_arrow(comparison, table).to_pandas()


def to_csv(comparison: Comparison) -> str:
    """All tables that have rows as CSV, each with a heading, an empty line between."""
    written = []
    for name, rows in tables(comparison).items():
        if rows:
            text = io.StringIO()
            writer = csv.DictWriter(text, _COLUMNS[name], lineterminator="\n")
            writer.writeheader()
            writer.writerows(map(_one_line, rows))
            written.append(text.getvalue())
    return "\n".join(written)


def to_json(comparison: Comparison) -> dict[str, Any]:
    """Everything as plain values; `methods` and `gaps` have one row per classifier, with all metrics and intervals."""
    blocks, tidy = comparison.blocks, tables(comparison)
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
            for block in blocks
            for group in block.groups
        ],
        "encoders": {name: spelling for spelling, name in comparison.encoder_names.items()},
        "covers": {name: meanings(comparison.medium)[name] for name in comparison.covers},
        "refused": comparison.refused,
        "notes": comparison.notes,
        "methods": [row for block in blocks for group in block.groups for row in _nested(comparison, block, group)],
        "pairs": tidy["pairs"],
        "triples": [{**row, "inverted": bool(row["inverted"])} for row in tidy["triples"]],
        "triple_counts": [
            {
                **{"metric": metric, "conclusive": triples.conclusive, "best_query": triples.best_query},
                **asdict(Fates.of([triples])),
                **_where(block, group),
            }
            for block in blocks
            for group in block.groups
            for metric, triples in group.triples.items()
        ],
        "gaps": [
            {**row, "quantity": group.quantity, "axis": loss.axis, "chance": loss.chance}
            for block in blocks
            for loss in block.losses
            for group in loss.groups
            for row in _nested(comparison, block, group)
        ],
        "gap_pairs": tidy["gap_pairs"],
        "conclusive": [
            {
                **{"metric": metric, "interval": covers, "conclusive": group.conclusive(metric, covers)},
                **{"direct": sum(pair.direct != "0" for pair in pairs)},
                **{"pairs": len(pairs), **_where(block, group)},
            }
            for block in blocks
            for group in [*block.groups, *block.gaps]
            for (metric, covers), pairs in group.pairs.items()
        ],
        "designs": [
            {
                **{"name": comparison.design_name(block.design), "catalog": block.design.catalog},
                **_design(block.design),
                **{"references": {loss.label: loss.reference for loss in block.losses}, "refused": block.refused},
            }
            for block in blocks
        ],
        **{name: tidy[name] for name in ("data_sets", "seeds", "detectors", "agreements")},
        "costs": [{**row, "conclusive": bool(row["conclusive"])} for row in tidy["costs"]],
    }


def _classifier_rows(comparison: Comparison, block: Block, group: Group) -> Iterator[dict[str, Any]]:
    for row in group.rows:
        for metric in METRICS:
            for covers, interval in row.intervals[metric].items():
                yield {
                    **{"method": comparison.classifier_name(row.classifier), "metric": metric},
                    **{"mean": _number(row.means[metric]), **_rank(row.ranks[metric][covers]), "interval": covers},
                    **_bounds(interval),
                    **_where(block, group),
                    **_classifier(comparison, row.classifier),
                }


def _nested(comparison: Comparison, block: Block, group: Group) -> Iterator[dict[str, Any]]:
    """One row per classifier; ranks are by the comparison's metric."""
    for row in group.rows:
        yield {
            "method": comparison.classifier_name(row.classifier),
            **{str(metric): _number(mean) for metric, mean in row.means.items()},
            "rank": _plain(row.rank(comparison.metric)),
            "ranks": {name: _plain(rank) for name, rank in row.ranks[comparison.metric].items()},
            "intervals": {
                metric: {name: one.bounds for name, one in named.items()} for metric, named in row.intervals.items()
            },
            "refused": {
                metric: {name: one.refused for name, one in named.items() if one.refused}
                for metric, named in row.intervals.items()
            },
            **_where(block, group),
            **_classifier(comparison, row.classifier),
            "deviation": {metric: row.spread(metric) for metric in METRICS},
        }


def _pair_rows(comparison: Comparison, block: Block, group: Group) -> Iterator[dict[str, Any]]:
    for (metric, covers), pairs in group.pairs.items():
        for pair in pairs:
            interval = pair.interval
            a, b = comparison.pair_names(pair)
            yield {
                **{"a": a, "b": b, "metric": metric, "interval": covers, "difference": _number(interval.mean)},
                **_bounds(interval),
                **{"conclusion": pair.conclusion, "p_value": None if interval.refused else pair.p_value},
                **{"direct": pair.direct, **_where(block, group)},
                **({} if group.against else {"correlation": _number(group.correlation(pair, metric))}),
            }


def _triple_rows(comparison: Comparison, block: Block, group: Group) -> Iterator[dict[str, Any]]:
    for metric, triples in group.triples.items():
        for one, pair in zip(triples.pairs, group.pairs[metric, "sampler"], strict=True):
            a, b = comparison.pair_names(pair)
            yield {
                **{"a": a, "b": b, "metric": metric, "closed": one.closed, "open": one.open, "paired": one.paired},
                **{"at_best_query": one.at_best, "inverted": int(one.inverted)},
                **{"correlation": _number(group.correlation(pair, metric)), "best_query": triples.best_query},
                **{"open_tasks": triples.tasks, "best_tasks": triples.best_tasks, **_where(block, group)},
            }


def _data_set_rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    for across in comparison.data_sets:
        design = across.designs[0]
        sizes = {"way": design.way, "shot": design.shot, "query": design.query, "dial": design.dial}
        for name, group in across.rows:
            for row in group.rows:
                for metric in METRICS:
                    for covers, interval in row.intervals[metric].items():
                        yield {
                            **{"data_set": name, "method": comparison.classifier_name(row.classifier)},
                            **{"metric": metric, "mean": _number(interval.mean), **_rank(row.ranks[metric][covers])},
                            **{"interval": covers, **_bounds(interval), "tasks": group.name},
                            **{"quantity": group.quantity, **sizes, "tasks_in_all": group.tasks},
                            **_classifier(comparison, row.classifier),
                        }


def _seed_rows(comparison: Comparison, block: Block, group: Group) -> Iterator[dict[str, Any]]:
    for row in group.rows:
        for metric, by_seed in row.seeds.items():
            for seed, mean in by_seed.items() if len(by_seed) > 1 else ():
                yield {
                    **{"method": comparison.classifier_name(row.classifier), "metric": metric, "tasks": group.name},
                    **{"seed": seed, "mean": mean, "mean_over_seeds": math.fsum(by_seed.values()) / len(by_seed)},
                    **{
                        "deviation": row.spread(metric),
                        **_design(block.design),
                        **_classifier(comparison, row.classifier),
                    },
                }


def _detector_rows(block: Block) -> Iterator[dict[str, Any]]:
    for one in block.detectors:
        first, second = one.accuracy or (None, None)
        yield {
            **{"sampler": one.sampler, "first": one.detectors[0], "second": one.detectors[1]},
            **{"classifiers": one.classifiers, "correlation": _number(one.correlation)},
            **{"first_accuracy": first, "second_accuracy": second, **_design(block.design)},
        }


def _agreement_rows(comparison: Comparison, block: Block) -> Iterator[dict[str, Any]]:
    for one in comparison.agreements:
        if one.design == block.design:
            yield {
                **{"tasks": one.label, "reference": one.reference},
                **{"classifiers": one.classifiers, "accuracy_with_worst": _number(one.accuracy_with_worst)},
                **{"worst_with_worst": _number(one.worst_with_worst), "average_drop": _number(one.average_drop)},
                **_design(block.design),
            }


def _cost_rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    for (design, label), by_classifier in comparison.costs.items():
        for classifier, costs in by_classifier.items():
            for one in costs.costs:
                yield {
                    **{"method": comparison.classifier_name(classifier), "attribute": one.name},
                    **{"cost": _number(one.cost.mean), "low": _number(one.cost.low), "high": _number(one.cost.high)},
                    **{"conclusive": int(one.is_conclusive), "planted_tasks": one.tasks},
                    **{"planted_classes": one.labels, "worst_class": one.worst_label, "tasks": label},
                    **_design(design),
                    **_classifier(comparison, classifier),
                }


def _where(block: Block, group: Group) -> dict[str, Any]:
    """The task set or gap that a row is of."""
    on = {"detector": group.detector, "seeds": group.seeds, "tasks_in_all": group.tasks}
    return {"tasks": group.name, **_design(block.design), **on}


def _design(design: Design) -> dict[str, Any]:
    fields = asdict(design)
    return {name: fields[name] for name in _DESIGN}


def _classifier(comparison: Comparison, classifier: Classifier) -> dict[str, str]:
    return {"encoder": comparison.encoder_names[classifier.encoder], "spelling": classifier.method}


def _rank(rank: RankRange | None) -> dict[str, int | None]:
    return dict.fromkeys(_RANK) if rank is None else dict(zip(_RANK, (rank.best, rank.worst), strict=True))


def _plain(rank: RankRange | None) -> dict[str, int] | None:
    """As cards have it."""
    return None if rank is None else asdict(rank)


def _bounds(interval: Interval) -> dict[str, Any]:
    return {"low": _number(interval.low), "high": _number(interval.high), "refused": interval.refused}


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _one_line(row: Mapping[str, Any]) -> dict[str, Any]:
    """Lists become text, which a cell of a flat table can hold."""
    return {
        name: " ".join(str(part) for part in value if part is not None) if isinstance(value, list) else value
        for name, value in row.items()
    }


def _type(column: str) -> pa.DataType:
    return pa.int64() if column in _WHOLE else pa.string() if column in _TEXT else pa.float64()
