"""Sentences on comparisons and cards: what was measured, what it shows by the rules of `verdicts`, what to do next.

Nothing that an interval does not support. Pages, cards, gates and the terminal quote them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from shotproof.comparison.card import Card, CardAxis
from shotproof.comparison.comparison import Comparison
from shotproof.comparison.numbers import bounds, level, listed, percent
from shotproof.comparison.verdicts import LITTLE, Verdict, verdicts
from shotproof.core.nouns import counted, nouns
from shotproof.core.records import UNKNOWN
from shotproof.results.evaluated import Classifier
from shotproof.results.origin import REFERENCES
from shotproof.stats.block import Group
from shotproof.stats.intervals import Interval, Needed
from shotproof.stats.triples import CLOSED, OPEN, PAIRED, Fates, Triples, best_name

MOST_SENTENCES = 5
_METRICS = {"acc": "accuracy", "wacc": "worst-class accuracy"}
_TASKS = {"unbalanced": "tasks with unequal queries"}
_NAMED = 3  # classifiers by name; of more, how many others there are

# What a classifier leans on that loses conclusively more than the placebo does, by axis.
_LEANS = {"attributes": "attributes", "contexts": "the {context}", "conditions": "what the conditions keep apart"}

# An encoder to try where there is one only, by what the items are.
OTHER_ENCODERS = {
    "image": "hf:facebook/dinov2-small(hub=True)",
    "sound": "hf-audio:laion/clap-htsat-unfused(hub=True)",
}


@dataclass(frozen=True)
class Step:
    """What to do next, with the command or the setting that does it."""

    why: str
    command: str


def headline(comparison: Comparison) -> list[str]:
    """What was measured and what came out, in at most five sentences; nothing that an interval does not support."""
    told = _chosen(comparison)
    if not told:
        return [
            _measured(comparison),
            "There is no gap to report: that needs the same classifiers on a reference (random tasks; for contexts the "
            "iid ones) and on other tasks of the same catalog, split, way, shot and query.",
        ]
    sentences = [_measured(comparison), *(_shown(comparison, alike) for alike in _alike(told))]
    return list(dict.fromkeys([*sentences, *_remarks(comparison, told)]))[:MOST_SENTENCES]


def next_steps(comparison: Comparison, experiment: str | None = None) -> list[Step]:
    """What to do next, each with the exact command.

    Args:
        comparison: what was found
        experiment: the name of the experiment's file, where it is a run's

    Returns:
        The steps, those that make the statements firmer first.
    """
    again = f"shotproof run {experiment}" if experiment else None
    found = _chosen(comparison)
    steps = []
    if found and "images" not in comparison.covers:
        steps.append(
            Step(
                "These intervals are about new tasks on the same items. For new items of the same classes:",
                f"{again or 'shotproof compare RESULTS TASKS CATALOG FEATURES'}"
                f"{', with images among the intervals of [output]' if again else ' --interval images -o report.html'}",
            )
        )
    for one in found:
        if one.loss.axis in _LEANS and not one.leans:
            steps.append(
                Step(
                    f"Without shuffled words, what is lost on {one.loss.label} tasks need not be due to shortcuts:",
                    "shotproof compare RESULTS TASKS CATALOG FEATURES ATTRIBUTES -o report.html",
                )
            )
        elif one.needed and one.needed.tasks:
            total = one.loss.gap.tasks + one.needed.tasks
            setting = (
                f"{again}, with tasks = {total} in [tasks]"
                if again
                else f"shotproof sample CATALOG --tasks {total} -o TASKS"
            )
            steps.append(
                Step(
                    f"To settle what is lost on {one.loss.label} tasks; decide on the number once, since to look again "
                    "and again until something is conclusive is no test:",
                    setting,
                )
            )
        elif one.losing and one.loss.axis == "attributes":
            steps.append(
                Step(
                    "Which attributes cost most is on the page; how supports and queries differ in them:",
                    "shotproof explain hardness TASKS ATTRIBUTES",
                )
            )
    if any(one.losing for one in found) and len(comparison.encoders) == 1:
        other = OTHER_ENCODERS.get(comparison.medium or "", "onnx:FILE")
        if comparison.encoders != [UNKNOWN]:
            command = (
                f'{again}, with "{other}" among the encoders'
                if again
                else f'shotproof encode CATALOG --encoder "{other}"'
            )
            steps.append(Step("Whether another encoder leans less:", command))
    return list(dict.fromkeys(steps))[:3]


def fates_of(triples: Sequence[Triples]) -> str:
    """How many comparisons of each kind are conclusive, and what becomes of the usual ones, in two sentences."""
    known = Fates.of(triples)
    counts: dict[str, int] = {}
    several = len({one.best_query for one in triples}) > 1
    for one in triples:
        for name, count in zip(one.names, one.conclusive.values(), strict=True):
            name = best_name(None) if several and name not in (CLOSED, OPEN, PAIRED) else name
            counts[name] = counts.get(name, 0) + count
    told = "; ".join(f"{name}: {count}" for name, count in counts.items())
    return (
        f"Conclusive of {counted(known.pairs, 'pair')}: {told}. Of the {known.closed} that are conclusive closed and "
        f"direct, {known.regained} are not so open and direct but again paired, {known.unconfirmed} are not confirmed "
        f"paired, {known.inverted} {'is' if known.inverted == 1 else 'are'} inverted."
    )


def _chosen(comparison: Comparison) -> list[Verdict]:
    """The verdicts to tell: of the largest design of each data set, as many as there is room for."""
    found = list(verdicts(comparison))
    room = MOST_SENTENCES - 2
    if len(found) > room:
        largest = {block.design.data_set: block.design for block in comparison.blocks}
        found = [one for one in found if one.block.design == largest[one.block.design.data_set]]
    if len(found) > room:
        # One set of each axis, the last of them: of contexts that is the hardest.
        found = list({(one.block.design, one.loss.axis): one for one in found}.values())
    return found[:room]


def _alike(told: Sequence[Verdict]) -> list[list[Verdict]]:
    """The verdicts, those together that say the same of the same classifiers, for one sentence."""
    groups: dict[Hashable, list[Verdict]] = {}
    for place, one in enumerate(told):
        same_if = (
            *(one.block.design, one.covers, one.loss.axis in _LEANS and one.leans),
            *(one.loss.excess is not None or one.loss.reference, one.more),
            *map(frozenset, (one.losing, one.unclear, one.most, one.least, one.than)),
        )
        groups.setdefault(same_if if one.losing and not one.gaining else place, []).append(one)
    return list(groups.values())


def _shown(comparison: Comparison, alike: Sequence[Verdict]) -> str:
    """Verdicts that say the same as a sentence."""
    one = alike[0]
    start = f"On {comparison.design_name(one.block.design)} tasks"
    known = [*one.losing, *one.gaining, *one.unclear]
    if not known:
        return f"{start}, {_who(comparison, one.at_chance)} at chance on {one.loss.reference} tasks: nothing to lose."
    about = "" if one.covers != "sampler" else f", about these {nouns(comparison.medium)} only"
    by = f"{level(comparison.level)} {one.covers} intervals{about}"
    if not one.losing and not one.gaining:
        return f"{start}, {_cannot_tell(comparison, one)} ({by})."
    parts = [_loses(comparison, alike)] if one.losing else []
    if one.gaining:
        subject = _subject(comparison, one.gaining, len(known))
        parts.append(f"{subject} {_verb(one.gaining, 'does', 'do')} better on {one.loss.label} tasks, not worse")
    if one.unclear and one.losing:
        others = "the other" if len(one.unclear) == 1 else "the others"
        parts.append(f"for {others} the data does not show it")
    return f"{start}, {'; '.join(parts)} ({by})."


def _loses(comparison: Comparison, alike: Sequence[Verdict]) -> str:
    """Who loses, how much on each task set, and who most and least where that can be told."""
    one = alike[0]
    lost = _lost(comparison, alike)
    if len(one.losing) == 1:
        return lost
    if one.most:
        most, least = (classifier_names(comparison, some) for some in (one.most, one.least))
        largest = listed([_share(each, each.most[0]) for each in alike])
        smallest = listed([_share(each, each.least[-1]) for each in alike])
        return f"{lost}; {most} {_verb(one.most, 'loses', 'lose')} most ({largest}), {least} least ({smallest})"
    if one.more:
        shares = listed([_share(each, one.more) for each in alike])
        more, than = classifier_name(comparison, one.more), classifier_names(comparison, one.than)
        return f"{lost}; {more} loses more ({shares}) than {than}; the data does not rank the rest"
    return f"{lost}; no two of them can be told apart"


def _lost(comparison: Comparison, alike: Sequence[Verdict]) -> str:
    """Who leans on what, where that can be said, and what they lose on each task set."""
    one = alike[0]
    subject = _subject(comparison, one.losing, len(one.losing) + len(one.gaining) + len(one.unclear))
    leans = list(dict.fromkeys(words for each in alike if (words := leans_on(comparison, each))))
    it, its, lose, lean = ("they", "their", "lose", "lean") if len(one.losing) > 1 else ("it", "its", "loses", "leans")
    of = f" of {its} {_METRICS[one.metric]} above chance"
    beyond = "beyond a placebo" if one.loss.excess else f"against {one.loss.reference} tasks"
    if len(alike) == 1:
        where, lost = f"on {one.loss.label} tasks", f"{_lost_share(one)}{of}{_only_points(one)} {beyond}"
    else:
        where = beyond
        amounts = [_lost_share(one) + of, *map(_lost_share, alike[1:])]
        lost = listed([f"{much} on {each.loss.label} tasks" for much, each in zip(amounts, alike, strict=True)])
    if len(one.losing) > 1 and any(_shares(each)[each.losing[0]].mean > 100 for each in alike):
        lost += ", where more than 100% is to fall below chance"
    if leans:
        return f"{subject} {lean} on {listed(leans)}: {where} {it} {lose} {lost}"
    return f"{subject} {lose} {where} {lost}"


def _lost_share(one: Verdict) -> str:
    """The share of the skill that is lost: from the least to the most of several classifiers."""
    if len(one.losing) == 1:
        return _share(one, one.losing[0])
    shares = sorted(_shares(one)[classifier].mean for classifier in one.losing)
    low, high = percent(shares[0]), percent(shares[-1])
    return f"{low}%" if low == high else f"{low}% to {high}%"


def _only_points(one: Verdict) -> str:
    """The points that are lost, of a single classifier."""
    if len(one.losing) > 1:
        return ""
    points = _lost_points(one, one.losing[0])
    return f", {percent(points.mean)} points {bounds(points)}"


def _cannot_tell(comparison: Comparison, one: Verdict) -> str:
    """Say how much is lost at most, if that is little; else that nothing is conclusive, and what would settle it."""
    known = one.unclear
    leans = leans_on(comparison, one)
    beyond = " beyond a placebo" if one.loss.excess else ""
    alone, several = len(known) == 1, counted(len(known), "classifier")
    name = classifier_name(comparison, known[0])
    if one.most_lost <= LITTLE:
        most = f"{percent(max(one.most_lost, 0.0))}% of {_METRICS[one.metric]} above chance"
        loses = f"{name} loses at most {most}" if alone else f"none of {several} loses more than {most}"
        shown = f": no more than that is due to {leans}" if leans else ""
        return f"{loses} on {one.loss.label} tasks{beyond}{shown}"
    what = f"leans on {leans}" if leans else f"loses anything on {one.loss.label} tasks"
    lost = {classifier: _lost_points(one, classifier) for classifier in known}
    given = [interval for interval in lost.values() if not interval.refused]
    if not given:
        return f"nothing can be said of {one.loss.label} tasks: {next(iter(lost.values())).refused}"
    low, high = min(interval.low for interval in given), max(interval.high for interval in given)
    between = f"the loss of {_METRICS[one.metric]}{beyond} is between {percent(low)} and {percent(high)} points"
    who = name if alone else f"any of {several}"
    settled = _if_it_is_so(one.needed, comparison.medium, one.covers)
    return f"the data does not show whether {who} {what}: {between}{settled}"


def _if_it_is_so(needed: Needed | None, medium: str | None, covers: str) -> str:
    settled = would_settle(needed, medium, covers)
    return f"; {settled}, if the loss is as large as it looks" if settled else ""


def would_settle(needed: Needed | None, medium: str | None, covers: str) -> str:
    """Say how many more tasks, or how much more data, would settle a question; nothing if none is practicable.

    Args:
        needed: what it would take; None if the estimate is not in the direction that is asked about
        medium: what the items are
        covers: the interval
    """
    if needed is None or (needed.tasks is None and needed.data is None):
        return ""
    unit = "classes" if covers == "classes" else f"{nouns(medium)} per class"
    more = counted(needed.tasks, "more task") if needed.tasks is not None else f"{needed.data:.1f} times the {unit}"
    return f"about {more} would settle it"


def _remarks(comparison: Comparison, told: Sequence[Verdict]) -> Iterator[str]:
    """Floors and ceilings."""
    for one in told:
        if one.at_chance and (one.losing or one.gaining or one.unclear):
            where = f"{one.loss.reference} tasks ({comparison.design_name(one.block.design)})"
            has = _verb(one.at_chance, "has", "have")
            yield f"{_who(comparison, one.at_chance)} at chance on {where} and {has} nothing to lose."
        if one.at_ceiling:
            yield (
                f"{classifier_names(comparison, one.at_ceiling)} {_verb(one.at_ceiling, 'is', 'are')} near 100% on "
                f"{one.loss.reference} tasks, where every interval is too narrow."
            )


def leans_on(comparison: Comparison, one: Verdict) -> str | None:
    """What is leaned on, where a placebo allows to say so."""
    known = _LEANS.get(one.loss.axis) if one.leans else None
    return known and known.format(context=comparison.context.replace("_", " "))


def _shares(one: Verdict) -> dict[Classifier, Interval]:
    return {row.classifier: row.intervals[one.metric][one.covers] for row in one.loss.skill.rows}


def _share(one: Verdict, classifier: Classifier) -> str:
    share = _shares(one)[classifier]
    return f"{percent(share.mean)}% {bounds(share)}"


def _lost_points(one: Verdict, classifier: Classifier) -> Interval:
    row = one.loss.lost.row(classifier)
    assert row is not None
    return row.intervals[one.metric][one.covers]


def _subject(comparison: Comparison, some: Sequence[Classifier], of: int) -> str:
    """E.g. `knn`, `both classifiers`, `all 5 classifiers` or `3 of 5 classifiers (knn, ncc and ridge)`."""
    if len(some) == 1:
        return classifier_name(comparison, some[0])
    if len(some) == of:
        return "both classifiers" if of == 2 else f"all {of} classifiers"
    return f"{len(some)} of {of} classifiers ({classifier_names(comparison, some)})"


def _who(comparison: Comparison, some: Sequence[Classifier]) -> str:
    return f"{classifier_names(comparison, some)} {_verb(some, 'is', 'are')}"


def classifier_names(comparison: Comparison, some: Sequence[Classifier]) -> str:
    """By name; where all methods of an encoder are among them, that they are."""
    if len(comparison.encoders) == 1:
        return listed([one.method for one in some], _NAMED)
    if len(comparison.methods) == 1:
        named = Classifier(listed([comparison.encoder_names[one.encoder] for one in some], _NAMED), some[0].method)
        return str(named)
    whole = [
        encoder
        for encoder in dict.fromkeys(one.encoder for one in some)
        if {one for one in comparison.classifiers if one.encoder == encoder} <= set(some)
    ]
    words = [f"all methods on {listed([comparison.encoder_names[one] for one in whole], _NAMED)}"] if whole else []
    return listed([*words, *(comparison.classifier_title(one) for one in some if one.encoder not in whole)], _NAMED)


def classifier_name(comparison: Comparison, one: Classifier) -> str:
    """Name a classifier by its method, with its encoder if there are several."""
    return comparison.classifier_title(one) if len(comparison.encoders) > 1 else one.method


def _verb(some: Sequence[Classifier], singular: str, plural: str) -> str:
    return singular if len(some) == 1 else plural


def _measured(comparison: Comparison) -> str:
    classifiers = len(comparison.classifiers)
    encoders, methods = len(comparison.encoders), len(comparison.methods)
    kinds = f"{counted(encoders, 'encoder')} × {counted(methods, 'method')}"
    if classifiers != encoders * methods:
        kinds = f"{counted(encoders, 'encoder')}, {counted(methods, 'method')}"
    tested = f"{counted(classifiers, 'classifier')} ({kinds}) {'was' if classifiers == 1 else 'were'} tested on"
    blocks = {comparison.design_name(block.design): block for block in comparison.blocks}
    if len({tuple(group.label for group in block.measured) for block in comparison.blocks}) > 1:
        return f"{tested} {listed([f'{name} tasks ({_task_sets(of.measured)})' for name, of in blocks.items()])}."
    each = " each" if len(blocks) > 1 else ""
    measured = [group for block in comparison.blocks for group in block.measured]
    return f"{tested} {listed(list(blocks))} tasks: {_task_sets(measured)}{each}."


def _task_sets(groups: Sequence[Group]) -> str:
    """E.g. `600 random tasks and 600 fewstab tasks`, or the range where the numbers differ."""
    sizes: dict[str, set[int]] = {}
    for group in groups:
        sizes.setdefault(group.label, set()).add(group.tasks)
    ordered = sorted(sizes, key=lambda label: (label not in REFERENCES, label))
    return listed([f"{_range(sizes[name])} {_sampler_words(name)}" for name in ordered])


def _sampler_words(label: str) -> str:
    return "tasks of an unknown sampler" if label == UNKNOWN else f"{label} tasks"


def _range(numbers: set[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def interval_sentences(comparison: Comparison) -> list[str]:
    """Say on which tasks the first interval could not be given, and why: one sentence per reason.

    Args:
        comparison: whose intervals are told

    Returns:
        The sentences; none where the first interval is everywhere.
    """
    wanted = comparison.covers[0]
    measured = [(block, group) for block in comparison.blocks for group in block.measured]
    sets: dict[str, list[str]] = {}
    for block, group in measured:
        refused = [row.intervals[comparison.metric][wanted].refused for row in group.rows]
        if refused and refused[0] is not None and all(refused):
            reason = refused[0].partition(";")[0].removeprefix(f"{group.label}: ")  # details are on the page
            sets.setdefault(reason, []).append(f"{group.label} ({comparison.design_name(block.design)})")
    others = [name for name in comparison.covers[1:] if name not in comparison.refused]
    instead = f"; the {others[0]} interval stands in its place" if others else ""
    if others and others[0] == "sampler":
        instead += f", and is about these {nouns(comparison.medium)} only"
    everywhere = len(sets) == 1 and wanted in comparison.refused
    return [
        f"No {wanted} interval{'' if everywhere else f' on {listed(labels, 3)} tasks'}: {reason}{instead}."
        for reason, labels in sets.items()
    ]


def axis_sentence(
    axis: CardAxis,
    metric: str,
    medium: str | None = None,
    context: str = "context",
    would_tell: Needed | None = None,
) -> str:
    """What an axis shows, in one or two sentences.

    Args:
        axis: with all but its verdict
        metric: that the statement is by
        medium: what the items are
        context: what contexts are called
        would_tell: what would settle it if nothing is conclusive
    """
    if axis.reference is None:
        chance = f"; guessing gives {percent(axis.chance['acc'])}%" if "acc" in axis.chance else ""
        accuracy = axis.estimates["accuracy"]
        return (
            f"On random tasks of {axis.way} ways and {counted(axis.shot, 'shot')}: {_in_percent(accuracy['acc'])} "
            f"accuracy, {_in_percent(accuracy['wacc'])} on the worst class{chance}."
        )
    where = _TASKS.get(axis.name, f"{axis.name} tasks")
    lost, share = axis.lost(metric), axis.estimates["skill_lost"][metric]
    if not share.has_mean:
        return f"It is at chance on {axis.reference.sampler} tasks, and has nothing to lose on {where}."
    beyond = "beyond a placebo" if "excess" in axis.estimates else f"against {axis.reference.sampler} tasks"
    leans = _LEANS.get(axis.axis, "").format(context=context.replace("_", " ")) if axis.is_shuffled else ""
    about = f" (sampler interval, about these {nouns(medium)} only)" if lost.covers == "sampler" else ""
    if axis.conclusion == "+":
        first = f"It leans on {leans}: on" if leans else "On"
        return (
            f"{first} {where} it loses {_in_percent(share)} of its {_METRICS[metric]} above chance {beyond}, "
            f"{_in_points(lost)}{about}."
        )
    if axis.conclusion == "-":
        return f"On {where} it does better, not worse: by {_in_points(lost.negated())} {beyond}{about}."
    what = f"leans on {leans}" if leans else f"loses anything on {where}"
    if math.isnan(lost.low + lost.high):
        return f"The data does not show whether it {what}: {lost.refused}."
    between = f"between {percent(lost.low)} and {percent(lost.high)} points {beyond}"
    if lost.low > 0 or lost.high < 0:  # by itself
        corrected = "after Holm's correction for all losses of the comparison"
        return f"The data does not show whether it {what} {corrected}; by itself, the loss is {between}{about}."
    if _loses_little(axis):
        most = f"{percent(max(axis.at_most or 0.0, 0.0))}% of its {_METRICS[metric]} above chance"
        return f"On {where} it loses at most {most} {beyond}{about}."
    settled = _if_it_is_so(would_tell if lost.mean > 0 else None, medium, lost.covers)
    return f"The data does not show whether it {what}: the loss is {between}{settled}{about}."


def card_sentences(card: Card) -> list[str]:
    """What was measured and what came out, in at most five sentences."""
    tasks = sum(one.tasks.tasks for one in card.axes)
    others = len(card.axes[0].baselines) if card.axes else 0
    beside = f", beside {counted(others, 'baseline classifier')}" if others else ""
    data = card.name or "the data"
    told = [f"{card.title} was tested on {data}: {counted(tasks, 'task')} on {_axis_names(card.axes)}{beside}."]
    usual = max((one for one in card.axes if one.reference is None), key=lambda one: one.shot == 5, default=None)
    if usual is not None:
        told.append(f"{usual.verdict} It ranks {usual.rank['accuracy']} classifiers.")
    losing = [one for one in card.stresses if one.conclusion == "+"]
    share = {one.name: one.estimates["skill_lost"][card.metric] for one in losing}
    losing.sort(key=lambda one: -share[one.name].mean)
    by = f"{level(card.level)} {_card_covers(card)}"
    if losing:
        shares = [f"{one.name} ({_in_percent(share[one.name])})" for one in losing]
        told.append(f"It conclusively loses accuracy above chance on {listed(shares)} ({by}).")
    clear = [one for one in card.stresses if one.conclusion == "-"]
    unclear = [one.name for one in card.stresses if one.conclusion == "0" and not _loses_little(one)]
    little = [one.name for one in card.stresses if one.conclusion == "0" and _loses_little(one)]
    if little:
        told.append(f"It loses at most {LITTLE:g}% of its accuracy above chance on {listed(little)} ({by}).")
    if unclear:
        told.append(f"The data does not show whether anything is lost on {listed(unclear)} ({by}).")
    if clear:
        told.append(f"It does better, not worse, on {listed([one.name for one in clear])} ({by}).")
    if card.missing:
        told.append(f"Not measured: {listed([one.name for one in card.missing])}; the reasons are below.")
    return told[:5]


def _loses_little(axis: CardAxis) -> bool:
    """Return whether little is lost at most."""
    return axis.at_most is not None and axis.at_most <= LITTLE


def _axis_names(axes: Sequence[CardAxis]) -> str:
    return listed([one.name for one in axes]) if axes else "no axis"


def _card_covers(card: Card) -> str:
    """The intervals that the statements are by: where some could not be given, of several kinds."""
    kinds = dict.fromkeys(one.lost(card.metric).covers for one in card.stresses)
    about = f", {'' if len(kinds) == 1 else 'the former '}about these {nouns(card.medium)} only"
    ordered = sorted(kinds, key=lambda name: name != "sampler") or [card.covers]
    return f"{listed(ordered)} intervals{about if 'sampler' in kinds else ''}"


def _in_percent(number: Interval) -> str:
    return f"{percent(number.mean)}% {bounds(number)}"


def _in_points(number: Interval) -> str:
    return f"{percent(number.mean)} points {bounds(number)}"
