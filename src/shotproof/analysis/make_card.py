"""From a comparison to the robustness card of one of its classifiers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shotproof.analysis.inputs import Inputs
from shotproof.comparison.advice import advice_on_axis, advice_on_cost
from shotproof.comparison.card import (
    BY_TASK_DIGITS,
    Card,
    CardAxis,
    CardBaseline,
    CardCost,
    CardExample,
    CardTasks,
    MissingAxis,
    axis_tasks,
    without_folders,
)
from shotproof.comparison.comparison import Comparison
from shotproof.comparison.sentences import axis_sentence, card_sentences
from shotproof.comparison.verdicts import Verdict, verdicts
from shotproof.core.errors import InputError
from shotproof.core.records import UNKNOWN, Source
from shotproof.results.answers import AnsweredTasks, answers_on
from shotproof.results.evaluated import METRICS, Classifier, Metric
from shotproof.results.origin import Design
from shotproof.stats.block import Block, ClassifierRow, Group, Loss
from shotproof.stats.costs import AttributeCost
from shotproof.stats.intervals import Interval, needed
from shotproof.stats.ranks import RankRange

SHOWN_COSTS = 3
SHOWN_ITEMS = 5


def make_card(
    comparison: Comparison,
    inputs: Inputs,
    classifier: Classifier,
    *,
    missing: Sequence[MissingAxis] = (),
    quick: bool = False,
) -> Card:
    """The card of one classifier of a comparison; the others are what it is ranked among.

    Args:
        comparison: of all classifiers on all task sets
        inputs: the task sets and results, for what costs most
        classifier: the one whose card it is
        missing: axes that could not be measured
        quick: whether the tasks were few

    Returns:
        The card.

    Raises:
        InputError: the comparison does not have the classifier.
    """
    blocks = [block for block in comparison.blocks if classifier in block.classifiers]
    if not blocks:
        known = ", ".join(map(str, comparison.classifiers))
        raise InputError(f"no results of {classifier}: expected one of {known}")
    making = _Making(comparison, inputs, classifier)
    alone = [axis for block in blocks for axis in making.random_axes(block)]
    stressed = [making.stress_axis(verdict) for verdict in verdicts(comparison) if verdict.loss.gap.row(classifier)]
    design = blocks[0].design
    features = next((one for one in inputs.features if one.record.classifier == classifier.encoder), None)
    sources = {"catalog": Source(design.catalog or UNKNOWN, design.data_set)}
    if features is not None:
        sources["features"] = Source(features.digest, comparison.encoder_names[classifier.encoder])
    card = Card(
        name=design.data_set,
        sources=sources,
        encoder=comparison.encoder_names[classifier.encoder],
        method=without_folders(classifier.method),
        split=design.split,
        medium=comparison.medium,
        quick=quick,
        metric=comparison.metric,
        level=comparison.level,
        covers=comparison.first_covers,
        context=comparison.context,
        axes=(*alone, *stressed),
        missing=tuple(missing),
        notes=tuple(comparison.notes),
    )
    return replace(card, verdict=tuple(card_sentences(card)))


class _Making:
    """How the axes of a card are made."""

    def __init__(self, comparison: Comparison, inputs: Inputs, classifier: Classifier) -> None:
        self.comparison, self.inputs, self.classifier = comparison, inputs, classifier
        self.metric: Metric = comparison.metric

    def random_axes(self, block: Block) -> Iterator[CardAxis]:
        """The classifier on random tasks of one size."""
        for group in block.groups:
            if group.is_random and group.row(self.classifier) is not None:
                way = block.design.way
                axis = self._axis(block, group, None, chance={"acc": 100 / way} if way else {})
                yield replace(axis, verdict=axis_sentence(axis, self.metric, self.comparison.medium))

    def stress_axis(self, told: Verdict) -> CardAxis:
        """Put the classifier on tasks that stress something beside their reference and their placebo."""
        block, loss = told.block, told.loss
        group = block.group(loss.label)
        covers = loss.lost.rows_by_classifier[self.classifier].first_covers(self.metric)
        concluded = loss.concluded[self.metric, covers][self.classifier]
        would = needed(concluded.interval, loss.gap.tasks)
        costs = tuple(self._costs(block.design, loss, group))
        medium, context = self.comparison.medium, self.comparison.context
        axis = self._axis(
            block,
            group,
            loss,
            chance=dict(loss.chance),
            conclusion=concluded.conclusion,
            is_shuffled=loss.is_shuffled,
            at_most=None if math.isnan(at_most := told.at_most.get(self.classifier, math.nan)) else at_most,
            advice=advice_on_axis(loss.axis, "+" if costs else concluded.conclusion, context, medium),
            costs=costs,
        )
        return replace(axis, verdict=axis_sentence(axis, self.metric, medium, context, would))

    def _axis(self, block: Block, group: Group, loss: Loss | None, **facts: Any) -> CardAxis:
        """The classifier's numbers on a task set; its words come after."""
        groups: dict[str, Group] = {"accuracy": group}
        if loss is not None:
            groups["reference_accuracy"] = block.group(loss.reference)
            groups.update({one.quantity: one for one in loss.groups})
        return CardAxis(
            **vars(axis_tasks(block, group, loss, self._tasks)),
            estimates=self._estimates(groups),
            by_task=self._by_task(group),
            rank=self._ranks({by: groups[by] for by in ("accuracy", "skill_lost") if by in groups}),
            baselines=self._baselines(group, groups.get("skill_lost")),
            verdict="",
            **facts,
        )

    def _estimates(self, groups: Mapping[str, Group]) -> dict[str, dict[str, Interval]]:
        """The classifier's numbers, by what each group has."""
        rows = {quantity: group.rows_by_classifier[self.classifier] for quantity, group in groups.items()}
        return {quantity: {metric: row.first(metric) for metric in METRICS} for quantity, row in rows.items()}

    def _by_task(self, group: Group) -> dict[str, tuple[float, ...]]:
        values = group.values[self.classifier]
        return {metric: tuple(values[metric].round(BY_TASK_DIGITS).tolist()) for metric in METRICS}

    def _ranks(self, groups: Mapping[str, Group]) -> dict[str, RankRange]:
        """The ranks by what each group has, of what the classifier has a number of."""
        found = {}
        for by, group in groups.items():
            row, ranked = group.row(self.classifier), [one for one in group.rows if self._has_number(one)]
            if row in ranked:
                # Without an interval, nothing tells them apart.
                found[by] = row.rank(self.metric) or RankRange(1, len(ranked), len(ranked))
        return found

    def _has_number(self, row: ClassifierRow) -> bool:
        return not math.isnan(row.means[self.metric])

    def _baselines(self, group: Group, skill: Group | None) -> tuple[CardBaseline, ...]:
        found = []
        for row in group.rows:
            if row.classifier != self.classifier:
                lost = skill and skill.row(row.classifier)
                shares: dict[str, float] = {}
                if lost:
                    shares = {m: lost.means[m] for m in METRICS if not math.isnan(lost.means[m])}
                accuracy: dict[str, float] = {m: row.means[m] for m in METRICS}
                encoder = self.comparison.encoder_names[row.classifier.encoder]
                found.append(CardBaseline(encoder, without_folders(row.classifier.method), accuracy, shares))
        return tuple(found)

    def _tasks(self, group: Group) -> CardTasks:
        digest = group.digests[0]
        searched = None
        for one in self.inputs.tasks:
            if one.digest == digest:
                searched = one.record.source("features")
        seed = group.seeds[0] if group.seeds else None
        return CardTasks(group.label, digest or UNKNOWN, group.tasks, seed, searched)

    def _costs(self, design: Design, loss: Loss, group: Group) -> Iterator[CardCost]:
        """Give the attributes, or the contexts of supports, that conclusively cost this classifier most."""
        costs = self.comparison.costs.get((design, loss.label), {}).get(self.classifier)
        answered = self._answered(group)
        for cost in costs.conclusive[:SHOWN_COSTS] if costs else ():
            yield CardCost(
                cost.name,
                cost.cost,
                cost.tasks,
                cost.labels,
                cost.worst_label,
                advice_on_cost(loss.axis, cost.name, self.comparison.medium),
                () if answered is None else tuple(_examples(answered, cost)),
            )

    def _answered(self, group: Group) -> AnsweredTasks | None:
        """The answers of this classifier; None where the task set is not there."""
        tasks = next((one for one in self.inputs.tasks if one.digest == group.digests[0]), None)
        if tasks is None:
            return None
        answers = answers_on(tasks, self.inputs.results).answers
        return AnsweredTasks(tasks, [one for one in answers if one.classifier == self.classifier])


def _examples(own: AnsweredTasks, cost: AttributeCost) -> Iterator[CardExample]:
    """Give the task with this attribute in the support of the class that loses most, where that does worst."""
    columns = (own.tasks.table.column(name).to_pylist() for name in ("attribute", "label"))
    rows = [
        row
        for row, (word, label) in enumerate(zip(*columns, strict=True))
        if word in cost.attributes and label == cost.worst_label
    ]
    accuracy = own.accuracy_by_row()[rows]
    if not rows or np.isnan(accuracy).all():
        return
    row = rows[int(np.nanargmin(accuracy))]
    shown: dict[str, Any] = own.tasks.table.slice(row, 1).to_pylist()[0]
    missed = own.answers[0].missed_at(row)
    queries = shown["query"] if missed is None else [shown["query"][place] for place in missed]
    yield CardExample(
        shown["task"], shown["label"], tuple(shown["support"][:SHOWN_ITEMS]), tuple(queries[:SHOWN_ITEMS])
    )
