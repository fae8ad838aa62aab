"""Opening paragraph for a team that ships a classifier: what to know and do, in plain words, and what terms mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from shotproof.comparison.comparison import Comparison
from shotproof.comparison.numbers import bounds, listed, percent
from shotproof.comparison.sentences import any_of, classifier_name, classifier_names, condition_of, shortcut_name
from shotproof.comparison.verdicts import LITTLE, Verdict, verdicts
from shotproof.core.nouns import counted, nouns
from shotproof.results.evaluated import Classifier
from shotproof.stats.costs import AttributeCost
from shotproof.stats.intervals import meanings

_SETS = {
    "fewstab": "tasks in which the examples of each class share an attribute that the {items} to classify lack "
    "(FewSTAB, 2024)",
    "ood": "tasks whose {items} to classify are in other contexts than the examples of their class (MetaCoCo, 2024)",
    "hard-ood": "tasks whose {items} to classify are in the contexts of the other classes' examples (SpurAudio, 2026)",
    "mixed-same": "the same tasks with each of the {items} to classify on the background of another one of its class",
    "mixed-random": "the same tasks with each of the {items} to classify on the background of any other one",
    "mixed-rival": "the same tasks with each of the {items} to classify on the background of another class of its task",
    "hardest": "tasks with the most misleading examples that a search finds (after Hard-Meta-Dataset++, 2023)",
}


class Term(NamedTuple):
    """Technical term that the sentences use, with its meaning."""

    word: str
    meaning: str


def summary(comparison: Comparison) -> list[str]:
    """Report what the classifiers rely on most, what it costs, and which one to choose.

    Args:
        comparison: comparison with placebos and shuffled attributes or contexts; the summary claims nothing that
            `verdict` does not

    Returns:
        At most three sentences; empty if the design does not measure reliance.
    """
    on_reliance = [verdict for verdict in verdicts(comparison) if shortcut_name(comparison, verdict)]
    losing = (verdict for verdict in on_reliance if verdict.losing)
    worst = max(losing, key=lambda verdict: verdict.share_lost, default=None)
    if worst is not None and worst.focus is not None:
        costs = _cost_sentences(comparison, worst, worst.focus)
        return [*_choice_sentence(comparison, worst), _reliance_sentence(comparison, worst, worst.focus), *costs]
    for verdict in on_reliance:
        for classifier in (*verdict.unclear, *verdict.gaining):
            if any(cost.is_conclusive for cost in _costs_of(comparison, verdict, classifier)):
                name = classifier_name(comparison, classifier)
                single = (
                    f"{name} relies on at least one attribute, although the data does not show a loss over all of them."
                )
                return [single, *_cost_sentences(comparison, verdict, classifier)]
    inconclusive = [verdict for verdict in on_reliance if verdict.unclear and not verdict.gaining]
    if not inconclusive:
        return []
    shortcuts = dict.fromkeys(str(shortcut_name(comparison, verdict)) for verdict in inconclusive)
    shortcut = listed(list(shortcuts), last="or")
    if all(verdict.most_lost <= LITTLE for verdict in inconclusive):
        most = max(0.0, *(verdict.most_lost for verdict in inconclusive))
        return [f"Reliance on {shortcut} is small: it costs at most {percent(most)}% of the accuracy above chance."]
    unclear = inconclusive[-1].unclear
    subject = classifier_name(comparison, unclear[0]) if len(unclear) == 1 else any_of(len(unclear))
    if all(verdict.refused for verdict in inconclusive):
        return [f"No statement is possible on whether {subject} relies on {shortcut}: {inconclusive[-1].refused}."]
    return [f"The data does not show whether {subject} relies on {shortcut}."]


def terms(comparison: Comparison) -> list[Term]:
    """Explain the technical terms that the sentences on this comparison use."""
    reported = list(verdicts(comparison))
    labels = [verdict.loss.label for verdict in reported]
    items = nouns(comparison.medium)
    explained = [Term(label, meaning.format(items=items)) for label, meaning in _SETS.items() if label in labels]
    if any(verdict.loss.excess for verdict in reported):
        shuffled = f"the same tasks with the {items} of each class shuffled, so that nothing in them misleads"
        explained.append(Term("placebo", shuffled))
    if reported:
        explained.append(Term("above chance", "the part of the accuracy that guessing would not reach"))
    meaning = meanings(comparison.medium)
    names = dict.fromkeys(verdict.interval_name for verdict in reported) or [comparison.first_interval_name]
    explained += [Term(f"{name} interval", f"allows for {_lower_first(meaning[name]).rstrip('.')}") for name in names]
    return explained


def _choice_sentence(comparison: Comparison, verdict: Verdict) -> Iterator[str]:
    """Name the most accurate classifier under stress, and those that the data does not separate from it."""
    group = verdict.block.group(verdict.loss.label)
    rows = sorted(group.rows, key=lambda row: -row.means[verdict.metric])
    if len(rows) < 2:
        return
    best = rows[0].classifier
    signs = group.signs(verdict.metric, verdict.interval_name)
    tied = [row.classifier for row in rows[1:] if signs.get((best, row.classifier)) != "+"]
    high, low = (percent(rows[index].means[verdict.metric]) for index in (0, -1))
    tasks, several = f"on {verdict.loss.label} tasks", counted(len(rows), "classifier")
    chance = verdict.loss.chance[verdict.metric]
    if rows[0].means[verdict.metric] <= chance:
        reached = f"the best one reaches {high}%, and guessing gives {percent(chance)}%"
        yield f"None of the {several} is better than guessing {tasks} ({reached})."
    elif len(tied) == len(rows) - 1:
        yield f"The data does not show which of the {several} is best {tasks}: they reach {low}% to {high}%."
    else:
        others = f"; the data does not separate it from {classifier_names(comparison, tied)}" if tied else ""
        name = classifier_name(comparison, best)
        yield f"Of the {several}, choose {name}, the most accurate {tasks} ({high}%){others}."


def _reliance_sentence(comparison: Comparison, verdict: Verdict, focus: Classifier) -> str:
    """State what the classifier in focus relies on, what that costs it, and whether others rely on it too."""
    row = verdict.loss.lost.row(focus)
    assert row is not None
    lost = row.intervals[verdict.metric][verdict.interval_name]
    with_skill = sum(map(len, (verdict.losing, verdict.gaining, verdict.unclear)))
    others = len(verdict.losing) - 1
    as_others = f", as {_others_do(others, with_skill - 1)}" if others else ""
    name, points = classifier_name(comparison, focus), f"{percent(lost.mean)} points {bounds(lost)} of accuracy"
    relies = f"{name} relies on {shortcut_name(comparison, verdict)}{as_others}."
    where = condition_of(verdict)
    return f"{relies} This costs {name} {points}{',' if where.startswith('if ') else ''} {where}."


def _others_do(count: int, total: int) -> str:
    """Write e.g. `does the other`, `do all others`, `do 2 others`."""
    if count == total:
        return "does the other" if total == 1 else "do all others"
    return "does another" if count == 1 else f"do {count} others"


def _costs_of(comparison: Comparison, verdict: Verdict, classifier: Classifier) -> list[AttributeCost]:
    costs = comparison.costs.get((verdict.block.design, verdict.loss.label), {}).get(classifier)
    return costs.costs if costs else []


def _cost_sentences(comparison: Comparison, verdict: Verdict, classifier: Classifier) -> Iterator[str]:
    """State what costs a classifier most, and which class suffers most."""
    costs = _costs_of(comparison, verdict, classifier)
    conclusive = [cost for cost in costs if cost.is_conclusive]
    if costs and not conclusive:
        kind = comparison.context.replace("_", " ") if verdict.loss.axis == "contexts" else "attribute"
        yield f"No single {kind} stands out."
    if conclusive:
        largest, *others = conclusive
        points = f"{percent(largest.cost.mean)} points {bounds(largest.cost)}"
        following = [f"'{cost.name}' ({percent(cost.cost.mean)} points)" for cost in others[:2]]
        more = f"; {listed(following)} {'comes' if len(following) == 1 else 'come'} next" if following else ""
        yield f"'{largest.name}' costs the most, {points}, above all for {largest.worst_name}{more}."


def _lower_first(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]
