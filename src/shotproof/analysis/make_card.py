"""Robustness card of one classifier of a comparison."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
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
    CardRemedy,
    CardTasks,
    MissingAxis,
    axis_tasks,
    without_folders,
)
from shotproof.comparison.card_remedies import feature_remedies, merge_remedies, support_remedies
from shotproof.comparison.comparison import Comparison
from shotproof.comparison.sentences import axis_sentence, card_sentences
from shotproof.comparison.verdicts import Verdict, verdicts
from shotproof.core.errors import InputError
from shotproof.core.records import UNKNOWN, FeaturesRecord, Source, TasksRecord
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
    """Build the card of one classifier; the comparison's other classifiers are the ones it is ranked against.

    Args:
        comparison: comparison of all classifiers on all task sets
        inputs: task sets and results, for the costliest attributes
        classifier: the classifier of the card
        missing: axes that could not be measured
        quick: whether only few tasks were evaluated

    Returns:
        The card.

    Raises:
        InputError: the comparison does not have the classifier.
    """
    blocks = [block for block in comparison.blocks if classifier in block.classifiers]
    if not blocks:
        classifiers = ", ".join(map(str, comparison.classifiers))
        raise InputError(f"no results of {classifier}: expected one of {classifiers}")
    builder = _CardBuilder(comparison, inputs, classifier)
    random_axes = [axis for block in blocks for axis in builder.random_axes(block)]
    stress_axes = [builder.stress_axis(verdict) for verdict in verdicts(comparison) if verdict.loss.gap.row(classifier)]
    design = blocks[0].design
    features = next(
        (candidate for candidate in inputs.features if candidate.record.classifier == classifier.encoder), None
    )
    axes = (*random_axes, *stress_axes)
    sources = {"catalog": Source(design.catalog or UNKNOWN, design.data_set)}
    if features is not None:
        sources["features"] = Source(features.digest, comparison.encoder_names[classifier.encoder])
    card = Card(
        name=design.data_set,
        sources=sources,
        encoder=comparison.encoder_names[classifier.encoder],
        method=without_folders(classifier.method),
        remedies=_remedies(inputs, classifier, axes),
        split=design.split,
        medium=comparison.medium,
        quick=quick,
        metric=comparison.metric,
        level=comparison.level,
        covers=comparison.first_interval_name,
        context=comparison.context,
        axes=axes,
        missing=tuple(missing),
        notes=tuple(comparison.notes),
    )
    return replace(card, verdict=tuple(card_sentences(card)))


def _remedies(inputs: Inputs, classifier: Classifier, axes: Sequence[CardAxis]) -> tuple[CardRemedy, ...]:
    """Return the remedies that the classifier was measured with, those of supports with the axes that have them."""
    features = (results.record.features for results in inputs.results)
    measured = next((record for record in features if record.classifier == classifier.encoder), FeaturesRecord())
    tasks: dict[str | None, TasksRecord] = {task_set.digest: task_set.record for task_set in inputs.tasks}
    tasks |= {results.record.tasks_digest: results.record.tasks for results in inputs.results}
    of_supports = (
        replace(remedy, axes=(axis.name,)) for axis in axes for remedy in support_remedies(axis.tasks.digest, tasks)
    )
    return merge_remedies([*feature_remedies(measured), *of_supports])


class _CardBuilder:
    """Builder of a card's axes."""

    def __init__(self, comparison: Comparison, inputs: Inputs, classifier: Classifier) -> None:
        self.comparison, self.inputs, self.classifier = comparison, inputs, classifier
        self.metric: Metric = comparison.metric

    def random_axes(self, block: Block) -> Iterator[CardAxis]:
        """Yield the axes of random tasks of one size."""
        for group in block.groups:
            if group.is_random and group.row(self.classifier) is not None:
                way = block.design.way
                axis = self._axis(block, group, None, chance={"acc": 100 / way} if way else {})
                yield replace(axis, verdict=axis_sentence(axis, self.metric, self.comparison.medium))

    def stress_axis(self, verdict: Verdict) -> CardAxis:
        """Build the axis of a stress-test set, with its reference and its placebo."""
        block, loss = verdict.block, verdict.loss
        group = block.group(loss.label)
        interval_name = loss.lost.rows_by_classifier[self.classifier].first_interval_name(self.metric)
        concluded = loss.concluded[self.metric, interval_name][self.classifier]
        tasks_needed = needed(concluded.interval, loss.gap.tasks)
        costs = tuple(self._costs(block.design, loss, group))
        medium, context = self.comparison.medium, self.comparison.context
        axis = self._axis(
            block,
            group,
            loss,
            chance=dict(loss.chance),
            conclusion=concluded.conclusion,
            is_shuffled=loss.is_shuffled,
            at_most=None if math.isnan(at_most := verdict.at_most.get(self.classifier, math.nan)) else at_most,
            advice=""
            if verdict.is_background_alone
            else advice_on_axis(loss.axis, "+" if costs else concluded.conclusion, context, medium),
            costs=costs,
        )
        return replace(axis, verdict=axis_sentence(axis, self.metric, medium, context, tasks_needed))

    def _axis(self, block: Block, group: Group, loss: Loss | None, **facts: Any) -> CardAxis:
        """Build an axis with the classifier's numbers; its sentences are added later."""
        groups: dict[str, Group] = {"accuracy": group}
        if loss is not None:
            groups["reference_accuracy"] = block.group(loss.reference)
            groups.update({loss_group.quantity: loss_group for loss_group in loss.groups})
        return CardAxis(
            **vars(axis_tasks(block, group, loss, partial(self._tasks, block.design))),
            estimates=self._estimates(groups),
            by_task=self._by_task(group),
            rank=self._ranks(
                {quantity: groups[quantity] for quantity in ("accuracy", "skill_lost") if quantity in groups}
            ),
            baselines=self._baselines(group, groups.get("skill_lost")),
            verdict="",
            **facts,
        )

    def _estimates(self, groups: Mapping[str, Group]) -> dict[str, dict[str, Interval]]:
        """Return the classifier's intervals by quantity and metric."""
        rows = {quantity: group.rows_by_classifier[self.classifier] for quantity, group in groups.items()}
        return {quantity: {metric: row.first(metric) for metric in METRICS} for quantity, row in rows.items()}

    def _by_task(self, group: Group) -> dict[str, tuple[float, ...]]:
        """Return the classifier's rounded values by task, for each metric."""
        values = group.values[self.classifier]
        return {metric: tuple(values[metric].round(BY_TASK_DIGITS).tolist()) for metric in METRICS}

    def _ranks(self, groups: Mapping[str, Group]) -> dict[str, RankRange]:
        """Return the rank range in each group where the classifier has a number."""
        ranks = {}
        for quantity, group in groups.items():
            row, ranked = group.row(self.classifier), [entry for entry in group.rows if self._has_number(entry)]
            if row in ranked:
                # Without an interval, the classifiers cannot be distinguished.
                ranks[quantity] = row.rank(self.metric) or RankRange(1, len(ranked), len(ranked))
        return ranks

    def _has_number(self, row: ClassifierRow) -> bool:
        """Return whether the row has a mean in the card's metric."""
        return not math.isnan(row.means[self.metric])

    def _baselines(self, group: Group, skill_lost: Group | None) -> tuple[CardBaseline, ...]:
        """Return the accuracy and the share of skill lost of every other classifier."""
        baselines = []
        for row in group.rows:
            if row.classifier != self.classifier:
                skill_row = skill_lost and skill_lost.row(row.classifier)
                shares: dict[str, float] = {}
                if skill_row:
                    shares = {
                        metric: skill_row.means[metric] for metric in METRICS if not math.isnan(skill_row.means[metric])
                    }
                accuracy: dict[str, float] = {metric: row.means[metric] for metric in METRICS}
                encoder = self.comparison.encoder_names[row.classifier.encoder]
                baselines.append(CardBaseline(encoder, without_folders(row.classifier.method), accuracy, shares))
        return tuple(baselines)

    def _tasks(self, design: Design, group: Group) -> CardTasks:
        """Describe the task set of a group."""
        digest = group.digests[0]
        features_digest = None
        for task_set in self.inputs.tasks:
            if task_set.digest == digest:
                features_digest = task_set.record.source("features")
        seed = group.seeds[0] if group.seeds else None
        change = self.comparison.changes.get((design, group.label))
        return CardTasks(group.label, digest or UNKNOWN, group.tasks, seed, features_digest, change)

    def _costs(self, design: Design, loss: Loss, group: Group) -> Iterator[CardCost]:
        """Yield the attributes, or contexts of supports, that conclusively cost this classifier the most."""
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
        """Return this classifier's answers, or None if the task set is missing."""
        tasks = next((candidate for candidate in self.inputs.tasks if candidate.digest == group.digests[0]), None)
        if tasks is None:
            return None
        answers = answers_on(tasks, self.inputs.results).answers
        return AnsweredTasks(
            tasks,
            [classifier_answers for classifier_answers in answers if classifier_answers.classifier == self.classifier],
        )


def _examples(answered: AnsweredTasks, cost: AttributeCost) -> Iterator[CardExample]:
    """Yield the task where the class that this attribute hurts most does worst with it in its support."""
    columns = (answered.tasks.table.column(name).to_pylist() for name in ("attribute", "label"))
    rows = [
        row
        for row, (word, label) in enumerate(zip(*columns, strict=True))
        if word in cost.attributes and label == cost.worst_label
    ]
    accuracy = answered.accuracy_by_row()[rows]
    if not rows or np.isnan(accuracy).all():
        return
    row = rows[int(np.nanargmin(accuracy))]
    example: dict[str, Any] = answered.tasks.table.slice(row, 1).to_pylist()[0]
    missed_indices = answered.answers[0].missed_at(row)
    queries = example["query"] if missed_indices is None else [example["query"][index] for index in missed_indices]
    yield CardExample(
        example["task"], example["label"], tuple(example["support"][:SHOWN_ITEMS]), tuple(queries[:SHOWN_ITEMS])
    )
