"""The first paragraph: what a team that ships a classifier should know and do, in plain words; and what terms mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from shotproof.comparison.comparison import Comparison
from shotproof.comparison.numbers import bounds, listed, percent
from shotproof.comparison.sentences import classifier_name, classifier_names, leans_on
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
    "hardest": "tasks with the most misleading examples that a search finds (after Hard-Meta-Dataset++, 2023)",
}


class Term(NamedTuple):
    """A word of the field, as sentences have it, and what it means."""

    word: str
    meaning: str


def summary(comparison: Comparison) -> list[str]:
    """Say what the classifiers lean on most, whom it hurts, and which to take; nothing if nothing tells of leaning.

    Args:
        comparison: with placebos and shuffled words; it claims nothing that `verdict` does not

    Returns:
        At most three sentences.
    """
    told = [one for one in verdicts(comparison) if leans_on(comparison, one)]
    worst = max((one for one in told if one.losing), key=lambda one: one.share_lost, default=None)
    if worst is not None and worst.focus is not None:
        costs = _costs(comparison, worst, worst.focus)
        return [*_choice(comparison, worst), _leans(comparison, worst, worst.focus), *costs]
    for one in told:
        for classifier in (*one.unclear, *one.gaining):
            if any(cost.is_conclusive for cost in _costs_of(comparison, one, classifier)):
                name = classifier_name(comparison, classifier)
                some = f"{name} leans on an attribute, although over all of them nothing is shown to be lost."
                return [some, *_costs(comparison, one, classifier)]
    known = [one for one in told if one.unclear and not one.gaining]
    if not known:
        return []
    what = listed(list(dict.fromkeys(str(leans_on(comparison, one)) for one in known)), last="or")
    unclear = known[-1].unclear
    who = "it" if len(unclear) == 1 else f"any of the {counted(len(unclear), 'classifier')}"
    if all(one.most_lost <= LITTLE for one in known):
        most = max(0.0, *(one.most_lost for one in known))
        lost = f"at most {percent(most)}% of the accuracy above chance is lost to it"
        return [f"Reliance on {what} is small: {lost}."]
    return [f"Whether {who} leans on {what} remains open: the data does not show it."]


def terms(comparison: Comparison) -> list[Term]:
    """Explain the words of the field that the sentences on this comparison have."""
    told = list(verdicts(comparison))
    labels = [one.loss.label for one in told]
    items = nouns(comparison.medium)
    explained = [Term(label, meaning.format(items=items)) for label, meaning in _SETS.items() if label in labels]
    if any(one.loss.excess for one in told):
        shuffled = f"the same tasks with the {items} of each class shuffled, so that nothing in them misleads"
        explained.append(Term("placebo", shuffled))
    if told:
        explained.append(Term("above chance", "the part of the accuracy that guessing would not reach"))
    meaning = meanings(comparison.medium)
    used = dict.fromkeys(one.covers for one in told) or [comparison.first_covers]
    explained += [Term(f"{name} interval", f"allows for {_lowered(meaning[name]).rstrip('.')}") for name in used]
    return explained


def _choice(comparison: Comparison, verdict: Verdict) -> Iterator[str]:
    """Say which classifier to take: the most accurate under stress, and all that cannot be told from it."""
    group = verdict.block.group(verdict.loss.label)
    rows = sorted(group.rows, key=lambda row: -row.means[verdict.metric])
    if len(rows) < 2:
        return
    best = rows[0].classifier
    signs = group.signs(verdict.metric, verdict.covers)
    tied = [row.classifier for row in rows[1:] if signs.get((best, row.classifier)) != "+"]
    high, low = (percent(rows[place].means[verdict.metric]) for place in (0, -1))
    there, several = _there(verdict), counted(len(rows), "classifier")
    chance = verdict.loss.chance[verdict.metric]
    if rows[0].means[verdict.metric] <= chance:
        guessed = f"{high}% right at best, and guessing gives {percent(chance)}%"
        yield f"None of the {several} is better than guessing {there} ({guessed})."
    elif len(tied) == len(rows) - 1:
        yield f"No one of the {several} can be told to be best {there}: they get {low}% to {high}% right."
    else:
        others = f"; {classifier_names(comparison, tied)} cannot be told from it" if tied else ""
        name = classifier_name(comparison, best)
        yield f"Of the {several} take {name}, the most accurate {there} ({high}%){others}."


def _leans(comparison: Comparison, verdict: Verdict, focus: Classifier) -> str:
    """Say what the classifier in focus leans on, and whether others do."""
    row = verdict.loss.lost.row(focus)
    assert row is not None
    lost = row.intervals[verdict.metric][verdict.covers]
    known = sum(map(len, (verdict.losing, verdict.gaining, verdict.unclear)))
    others = len(verdict.losing) - 1
    alike = f", as {_others_do(others, known - 1)}," if others else ""
    points = f"{percent(lost.mean)} points {bounds(lost)} of accuracy"
    what = leans_on(comparison, verdict)
    comma = "" if alike else ","
    return (
        f"{classifier_name(comparison, focus)} leans on {what}{alike}{comma} which costs it {points} {_there(verdict)}."
    )


def _others_do(some: int, of: int) -> str:
    """E.g. `the other does`, `all others do`, `2 others do`."""
    if some == of:
        return "the other does" if of == 1 else "all others do"
    return "another does" if some == 1 else f"{some} others do"


def _there(verdict: Verdict) -> str:
    return f"on {verdict.loss.label} tasks"


def _costs_of(comparison: Comparison, verdict: Verdict, classifier: Classifier) -> list[AttributeCost]:
    costs = comparison.costs.get((verdict.block.design, verdict.loss.label), {}).get(classifier)
    return costs.costs if costs else []


def _costs(comparison: Comparison, verdict: Verdict, classifier: Classifier) -> Iterator[str]:
    """Say what costs a classifier most, and which class suffers most."""
    costs = _costs_of(comparison, verdict, classifier)
    conclusive = [cost for cost in costs if cost.is_conclusive]
    if costs and not conclusive:
        what = comparison.context.replace("_", " ") if verdict.loss.axis == "contexts" else "attribute"
        yield f"No single {what} stands out."
    if conclusive:
        first, *others = conclusive
        points = f"{percent(first.cost.mean)} points {bounds(first.cost)}"
        then = [f"'{one.name}' ({percent(one.cost.mean)} points)" for one in others[:2]]
        more = f"; then {listed(then)}" if then else ""
        yield f"'{first.name}' costs most: {points}, most of all for {first.worst_name}{more}."


def _lowered(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]
