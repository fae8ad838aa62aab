"""Sentences on comparisons and cards: what was measured, what it shows by the rules of `verdicts`, what to do next.

No sentence claims more than an interval supports. Pages, cards, gates and the terminal quote them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from shotproof.comparison.card import Card, CardAxis
from shotproof.comparison.changed_sets import AXIS as CHANGES
from shotproof.comparison.changed_sets import OF_NEW_ITEMS, Companions, changes_last, companions, without_companions
from shotproof.comparison.comparison import Comparison
from shotproof.comparison.numbers import bounds, level, listed, percent
from shotproof.comparison.verdicts import LITTLE, Verdict, verdicts
from shotproof.core.nouns import counted, nouns
from shotproof.core.records import UNKNOWN
from shotproof.results.applied_change import SWAPS, AppliedChange
from shotproof.results.evaluated import Classifier
from shotproof.results.origin import REFERENCES
from shotproof.stats.block import Group, Loss
from shotproof.stats.intervals import Interval, Needed
from shotproof.stats.intervals import needed as needed_for
from shotproof.stats.triples import CLOSED, OPEN, PAIRED, Fates, Triples, best_name

MOST_SENTENCES = 5
MOST_CARD_SENTENCES = 6
_METRICS = {"acc": "accuracy", "wacc": "worst-class accuracy"}
_TASKS = {"unbalanced": "tasks with unequal queries"}
# Words that begin a phrase in lower case; names of classifiers keep theirs.
_LOWERCASE_STARTS = ("all", "both", "the", "on", "with", "without", "if")
_NAMED = 3  # classifiers listed by name; the others are counted

# What a classifier relies on if it conclusively loses more than the placebo does, by axis.
_RELIED_ON = {
    "attributes": "attributes",
    "contexts": "the {context}",
    "conditions": "what distinguishes the conditions",
    "changes": "the background",
}

# What is done to items in task sets of the axis `changes`, by change; others are `with CHANGE applied`.
_CHANGED = {
    "only-foreground": "without the background",
    "only-background": "with the background alone",
    "mixed-same": "on the background of another item of the class",
    "mixed-random": "on the background of any other item",
    "mixed-rival": "on the background of another class of the task",
}

# Whose background is shown if only the background differs from the reference.
_NEW_BACKGROUND = {"mixed-random": "any item", "mixed-rival": "another class of the task"}
_ONLY_THE_BACKGROUND = "if only the background changes"

# Another encoder to try if only one was tested, by medium.
OTHER_ENCODERS = {
    "image": "hf:facebook/dinov2-small(hub=True)",
    "sound": "hf-audio:laion/clap-htsat-unfused(hub=True)",
}


@dataclass(frozen=True)
class Step:
    """Suggested next step, with the command or the setting that carries it out."""

    why: str
    command: str


def headline(comparison: Comparison) -> list[str]:
    """Report what was measured and found, in at most five statements, each supported by an interval."""
    judged = list(verdicts(comparison))
    selected = _select_verdicts(comparison, judged)
    if not selected:
        return [
            _design_sentence(comparison),
            "There is no gap to report. A gap needs the same classifiers on reference tasks and on other tasks of the "
            "same catalog, split, way, shot and query. Reference tasks are random tasks, or iid tasks for contexts.",
        ]
    findings = [_verdict_sentence(comparison, group, judged) for group in _group_verdicts(selected)]
    sentences = [_design_sentence(comparison), *findings, *_floor_and_ceiling_remarks(comparison, selected)]
    return list(dict.fromkeys(sentences))[:MOST_SENTENCES]


def next_steps(comparison: Comparison, experiment: str | None = None) -> list[Step]:
    """Suggest what to do next, each step with the exact command.

    Args:
        comparison: results to follow up on
        experiment: name of the experiment file, if the comparison comes from a run

    Returns:
        At most three steps; those that make the statements firmer come first.
    """
    rerun = f"shotproof run {experiment}" if experiment else None
    selected = _select_verdicts(comparison, list(verdicts(comparison)))
    steps = []
    if selected and "images" not in comparison.interval_names:
        steps.append(
            Step(
                "These intervals hold for new tasks on the same items. For intervals that also hold for new items:",
                f"{rerun or 'shotproof compare RESULTS TASKS CATALOG FEATURES'}"
                f"{', with images among the intervals of [output]' if rerun else ' --interval images -o report.html'}",
            )
        )
    for verdict in selected:
        label, axis = verdict.loss.label, verdict.loss.axis
        if axis in _RELIED_ON and axis != CHANGES and not verdict.shows_reliance:
            steps.append(
                Step(
                    f"Without shuffled {axis} as a control, the loss on {label} tasks need not be due to shortcuts. "
                    "To add this control:",
                    "shotproof compare RESULTS TASKS CATALOG FEATURES ATTRIBUTES -o report.html",
                )
            )
        elif verdict.needed and verdict.needed.tasks:
            total = verdict.loss.gap.tasks + verdict.needed.tasks
            setting = (
                f"{rerun}, with tasks = {total} in [tasks]"
                if rerun
                else f"shotproof sample CATALOG --tasks {total} -o TASKS"
            )
            steps.append(
                Step(
                    f"To settle whether accuracy is lost {condition_of(verdict)}, use more tasks, in a number fixed "
                    "in advance (a test repeated until it is conclusive is not valid):",
                    setting,
                )
            )
        elif verdict.losing and axis == "attributes":
            steps.append(
                Step(
                    "The report shows which attributes cost most. To see how supports and queries differ in them:",
                    "shotproof explain hardness TASKS ATTRIBUTES",
                )
            )
    if any(verdict.losing for verdict in selected) and len(comparison.encoders) == 1:
        encoder = OTHER_ENCODERS.get(comparison.medium or "", "onnx:FILE")
        if comparison.encoders != [UNKNOWN]:
            command = (
                f'{rerun}, with "{encoder}" among the encoders'
                if rerun
                else f'shotproof encode CATALOG --encoder "{encoder}"'
            )
            steps.append(Step("To see whether another encoder loses less:", command))
    return list(dict.fromkeys(steps))[:3]


def fates_sentence(triples: Sequence[Triples]) -> str:
    """Report how many comparisons of each kind are conclusive, and how many closed, direct ones the others confirm."""
    fates = Fates.of(triples)
    counts: dict[str, int] = {}
    several = len({task_set.best_query for task_set in triples}) > 1
    for task_set in triples:
        for name, count in zip(task_set.names, task_set.conclusive.values(), strict=True):
            name = best_name(None) if several and name not in (CLOSED, OPEN, PAIRED) else name
            counts[name] = counts.get(name, 0) + count
    by_kind = "; ".join(f"{name}: {count}" for name, count in counts.items())
    return (
        f"Conclusive among {counted(fates.pairs, 'pair')}: {by_kind}. "
        f"{fates.closed} of these pairs {_be(fates.closed)} conclusive in the closed, direct comparison. Of them, "
        f"{fates.regained} {_be(fates.regained)} inconclusive in the open, direct one but conclusive again in the "
        f"paired one. The paired one does not confirm {fates.unconfirmed}, and {fates.inverted} "
        f"{_be(fates.inverted)} inverted."
    )


def _select_verdicts(comparison: Comparison, judged: Sequence[Verdict]) -> list[Verdict]:
    """Select the verdicts to report: those on the largest design of each data set, as many as there is room for."""
    selected = changes_last(without_companions(judged))
    room = MOST_SENTENCES - 2
    if len(selected) > room:
        largest = {block.design.data_set: block.design for block in comparison.blocks}
        selected = [verdict for verdict in selected if verdict.block.design == largest[verdict.block.design.data_set]]
    if len(selected) > room:
        # One set of each axis, the last of them: among contexts, that is the hardest. Of changes, the most important.
        changed = [verdict for verdict in selected if verdict.loss.axis == CHANGES]
        others = [verdict for verdict in selected if verdict.loss.axis != CHANGES]
        ordered = [*others, *reversed(changed)]
        selected = list({(verdict.block.design, verdict.loss.axis): verdict for verdict in ordered}.values())
        selected += [
            verdict for verdict in changed if verdict.losing and all(verdict is not other for other in selected)
        ]
    return selected[:room]


def _group_verdicts(selected: Sequence[Verdict]) -> list[list[Verdict]]:
    """Group verdicts that state the same of the same classifiers, so that one sentence reports them."""
    groups: dict[Hashable, list[Verdict]] = {}
    for index, verdict in enumerate(selected):
        key = (
            *(verdict.block.design, verdict.interval_name, verdict.loss.axis in _RELIED_ON and verdict.shows_reliance),
            *(
                verdict.loss.excess is not None or verdict.loss.reference,
                verdict.more,
                verdict.is_background_alone,
            ),
            *map(frozenset, (verdict.losing, verdict.unclear, verdict.most, verdict.least, verdict.than)),
        )
        groups.setdefault(key if verdict.losing and not verdict.gaining else index, []).append(verdict)
    return list(groups.values())


def _verdict_sentence(comparison: Comparison, group: Sequence[Verdict], judged: Sequence[Verdict]) -> str:
    """Write verdicts that state the same as one statement: a few short sentences, and the intervals they rest on.

    Args:
        comparison: comparison that is reported
        group: the verdicts
        judged: all verdicts of the comparison, for what is reported together with these
    """
    verdict = group[0]
    design = comparison.design_name(verdict.block.design)
    with_skill = [*verdict.losing, *verdict.gaining, *verdict.unclear]
    if with_skill and verdict.is_background_alone:
        alone = _background_alone_sentence(verdict, verdict.loss)
        if alone:
            return f"On {design} tasks: {_lower_first(alone)} {_basis(comparison, verdict)}"
    if not with_skill:
        at_chance = verdict.at_chance
        start = f"On {verdict.loss.reference} tasks ({design}), {classifier_names(comparison, at_chance)}"
        return f"{start} {_agree(at_chance, 'is', 'are')} at chance, so {_no_skill_to_lose(at_chance)}."
    where = _capitalized(condition_of(verdict))
    related = companions(verdict, judged)
    also = [_for_new_items_sentence(comparison, related.for_new_items)] if related.for_new_items else []
    start = f"{where} ({design})" if len(group) == 1 else f"On {design} tasks"
    if not verdict.losing and not verdict.gaining:
        statement = _inconclusive_statement(comparison, verdict, start)
        return " ".join([statement, *_companion_sentences(comparison, verdict, related), *also])
    sentences = [*_loss_sentences(comparison, group, start)] if verdict.losing else []
    if verdict.gaining:
        subject = _subject(comparison, verdict.gaining, len(with_skill))
        subject = _capitalized(subject) if sentences else f"{start}, {subject}"
        sentences.append(f"{subject} {_agree(verdict.gaining, 'does', 'do')} better, not worse.")
    if verdict.unclear and verdict.losing:
        sentences.append(f"For the {_agree(verdict.unclear, 'other', 'others')}, the data does not show a loss.")
    return " ".join(
        [*sentences, *_companion_sentences(comparison, verdict, related), _basis(comparison, verdict), *also]
    )


def _companion_sentences(comparison: Comparison, verdict: Verdict, related: Companions) -> Iterator[str]:
    """State what cutting and pasting itself costs, and what the background alone gives, under the same interval."""
    pasting = related.pasted and _pasting_costs(
        _intervals_of_skilled(verdict, related.pasted.loss.skill), comparison.medium
    )
    alone = related.alone and _background_alone_sentence(verdict, related.alone.loss)
    yield from filter(None, (pasting, alone))


def _for_new_items_sentence(comparison: Comparison, verdict: Verdict) -> str:
    """State what another swap of the background shows for new items, after a swap that shows nothing for these."""
    where = _capitalized(condition(verdict.loss.label, verdict.change))
    start, items = f"{where},", nouns(comparison.medium)
    with_skill = sum(map(len, (verdict.losing, verdict.gaining, verdict.unclear)))
    basis = f"({level(comparison.level)} {verdict.interval_name} intervals)"
    if verdict.losing:
        subject = _subject(comparison, verdict.losing, with_skill)
        lose, their = _agree(verdict.losing, "loses", "lose"), _agree(verdict.losing, "its", "their")
        amount = f"{_format_lost_share(verdict)} of {their} {_METRICS[verdict.metric]} above chance"
        return f"{start} {subject} {lose} {amount}, which also holds for new {items} {basis}."
    losses = [_lost_points(verdict, classifier) for classifier in (*verdict.gaining, *verdict.unclear)]
    return _no_loss_for_new_items(start, losses, items, basis)


def _no_loss_for_new_items(start: str, losses: Sequence[Interval], items: str, basis: str) -> str:
    """State that a swap shows no loss for new items, with its bounds; losses are in points."""
    available = [loss for loss in losses if not loss.refused]
    if not available:
        return f"{start} the data does not show a loss for new {items}."
    low, high = min(loss.low for loss in available), max(loss.high for loss in available)
    between = f"it is between {percent(low)} and {percent(high)} points"
    return f"{start} the data does not show a loss for new {items}: {between} {basis}."


def _intervals_of_skilled(verdict: Verdict, group: Group) -> list[Interval]:
    """Return the numbers of the classifiers with skill in a group, under the interval of the verdict.

    Empty if there is no interval: tasks on which a classifier always does equally well have none.
    """
    rows = [row for name in (*verdict.losing, *verdict.gaining, *verdict.unclear) if (row := group.row(name))]
    intervals = [row.intervals[verdict.metric].get(verdict.interval_name) for row in rows]
    with_mean = [interval for interval in intervals if interval and interval.has_mean]
    return [] if all(interval.refused for interval in with_mean) else with_mean


def _background_alone_sentence(verdict: Verdict, loss: Loss) -> str:
    """State what the classifiers with skill reach from the background alone; empty without an interval."""
    intervals = _intervals_of_skilled(verdict, verdict.block.group(loss.label))
    return _background_gives([interval.shifted(-loss.chance[verdict.metric]) for interval in intervals])


def _background_gives(above: Sequence[Interval]) -> str:
    """State how many points above chance the background alone gives; empty if there is no number."""
    if not above:
        return ""
    helped, hurt = sum(interval.low > 0 for interval in above), sum(interval.high < 0 for interval in above)
    total, points = len(above), _format_range_of(above, " points")
    if hurt == total:
        below = _format_range_of([interval.negated() for interval in above], " points")
        return f"With the background alone, accuracy is {below} below chance."
    if helped == total:
        return f"The background alone gives {points} above chance."
    counts = [f"{count} of {total} are clearly {side}" for count, side in ((helped, "above"), (hurt, "below")) if count]
    if helped:
        return f"With the background alone, accuracy minus chance is {points}; {listed(counts)}."
    known = f"The background alone is not shown to help: accuracy minus chance is {_format_bounds(above, ' points')}"
    return f"{known}{f'; {listed(counts)}' if counts else ''}."


def _pasting_costs(shares: Sequence[Interval], medium: str | None) -> str:
    """State what share of the skill cutting and pasting, or mixing again, costs; empty if there is no number."""
    if not shares:
        return ""
    costly, total = sum(share.low > 0 for share in shares), len(shares)
    skill = "of the accuracy above chance"
    action = "Mixing again" if medium == "sound" else "Cutting and pasting"
    if costly:
        sure = f", clearly so for {costly} of {total} classifiers" if costly < total else ""
        return f"{action} alone costs {_format_range_of(shares, '%')} {skill}{sure}."
    return f"{action} alone has no clear cost: it is {_format_bounds(shares, '%')} {skill}."


def _format_range_of(intervals: Sequence[Interval], unit: str) -> str:
    """Format a number with its bounds, or the range of several numbers."""
    if len(intervals) == 1:
        return f"{percent(intervals[0].mean)}{unit} {bounds(intervals[0])}"
    low, high = (percent(pick(interval.mean for interval in intervals)) for pick in (min, max))
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"


def _format_bounds(intervals: Sequence[Interval], unit: str) -> str:
    """Format a number with its bounds, or what lies between the bounds of several, if it is not clear what it is."""
    if len(intervals) == 1:
        return _format_range_of(intervals, unit)
    bounded = [interval for interval in intervals if not interval.refused]
    low, high = min(interval.low for interval in bounded), max(interval.high for interval in bounded)
    return f"between {percent(low)}{'%' * (unit == '%')} and {percent(high)}{unit}"


def _basis(comparison: Comparison, verdict: Verdict) -> str:
    """Name the intervals that a statement rests on, and what they are valid for."""
    scope = f", {_these_only(comparison.medium)}" if verdict.interval_name == "sampler" else ""
    return f"Basis: {level(comparison.level)} {verdict.interval_name} intervals{scope}."


def _loss_sentences(comparison: Comparison, group: Sequence[Verdict], start: str) -> Iterator[str]:
    """State who loses how much on each task set, and who loses most and least if the data ranks them."""
    verdict = group[0]
    several = len(verdict.losing) > 1
    subject = _subject(comparison, verdict.losing, sum(map(len, (verdict.losing, verdict.gaining, verdict.unclear))))
    shortcuts = list(dict.fromkeys(name for member in group if (name := shortcut_name(comparison, member))))
    they, their, lose, rely = ("They", "their", "lose", "rely") if several else ("It", "its", "loses", "relies")
    metric = _METRICS[verdict.metric]
    compared = _compared_with(verdict.loss.reference, has_placebo=verdict.loss.excess is not None)
    if shortcuts:
        yield f"{start}, {subject} {rely} on {listed(shortcuts)}."
    elif len(group) > 1:
        yield f"{start}, {subject} {lose} {metric}{compared}."
    if len(group) == 1:
        amount = f"{_format_lost_share(verdict)} of {their} {metric} above chance{_points_in_parentheses(verdict)}"
        yield f"{they if shortcuts else f'{start}, {subject}'} {lose} {amount}{compared}."
    elif all(_swaps_background(member) for member in group):
        yield _swaps_sentence(group, f"{they.lower()} {lose}", f"{their} {metric} above chance") + f"{compared}."
    else:
        # The sentence before says what they rely on, so how a swap differs from its reference need not be repeated.
        amounts = listed(
            [f"{_format_lost_share(member)} {condition(member.loss.label, member.change)}" for member in group]
        )
        end = compared if shortcuts else ""
        yield f"Of {their} {metric} above chance, {they.lower()} {lose} {amounts}{end}."
    if several and any(_skill_shares(member)[member.losing[0]].mean > 100 for member in group):
        yield "More than 100% means falling below chance."
    if several:
        yield _ranking_sentence(comparison, group)


def _swaps_background(verdict: Verdict) -> bool:
    return verdict.change is not None and verdict.change.swaps_background(verdict.reference_change)


def _swaps_sentence(group: Sequence[Verdict], they_lose: str, skill: str) -> str:
    """State what several swaps of the background cost, without what they are compared with.

    Args:
        group: the swaps, against the same reference
        they_lose: subject and verb
        skill: what a share of is lost
    """
    changes = [member.change for member in group if member.change is not None]
    where = ", ".join(filter(None, (_ONLY_THE_BACKGROUND, changes[0].place)))
    phrases = [f" of {skill} with the background of ", *[" with that of "] * (len(group) - 1)]
    amounts = [
        f"{_format_lost_share(member)}{phrase}{_NEW_BACKGROUND[change.name]}"
        for member, phrase, change in zip(group, phrases, changes, strict=True)
    ]
    return f"{_capitalized(where)}, {they_lose} {', '.join(amounts[:-1])}, and {amounts[-1]}"


def _ranking_sentence(comparison: Comparison, group: Sequence[Verdict]) -> str:
    """State who loses most and least on each task set, as far as the data ranks the classifiers."""
    verdict = group[0]
    if verdict.most:
        most, least = (classifier_names(comparison, names) for names in (verdict.most, verdict.least))
        largest = listed([_format_share(member, member.most[0]) for member in group])
        smallest = listed([_format_share(member, member.least[-1]) for member in group])
        lose = _agree(verdict.most, "loses", "lose")
        up_to, down_to = _agree(verdict.most, "", "up to "), _agree(verdict.least, "", "down to ")
        return f"{_capitalized(most)} {lose} the most ({up_to}{largest}), and {least} the least ({down_to}{smallest})."
    if verdict.more:
        shares = listed([_format_share(member, verdict.more) for member in group])
        more, than = classifier_name(comparison, verdict.more), classifier_names(comparison, verdict.than)
        return f"{more} loses more ({shares}) than {than}, but the data does not rank all of them."
    return "The data does not rank them."


def _format_lost_share(verdict: Verdict) -> str:
    """Format the share of the skill that is lost; of several classifiers, from the least to the most."""
    if len(verdict.losing) == 1:
        return _format_share(verdict, verdict.losing[0])
    shares = sorted(_skill_shares(verdict)[classifier].mean for classifier in verdict.losing)
    low, high = percent(shares[0]), percent(shares[-1])
    return f"{low}%" if low == high else f"{low}% to {high}%"


def _points_in_parentheses(verdict: Verdict) -> str:
    """Format the points that a single classifier loses; empty for several."""
    if len(verdict.losing) > 1:
        return ""
    return f" ({_format_points(_lost_points(verdict, verdict.losing[0]))})"


def _inconclusive_statement(comparison: Comparison, verdict: Verdict, start: str) -> str:
    """State how much is lost at most, if that is little; else that nothing is conclusive, and what would settle it."""
    unclear = verdict.unclear
    shortcut = shortcut_name(comparison, verdict)
    metric, has_placebo = _METRICS[verdict.metric], verdict.loss.excess is not None
    basis = _basis(comparison, verdict)
    name = classifier_name(comparison, unclear[0]) if len(unclear) == 1 else None
    if verdict.most_lost <= LITTLE:
        most = f"{percent(max(verdict.most_lost, 0.0))}% of its {metric} above chance"
        most += _compared_with(verdict.loss.reference, has_placebo)
        loses = f"{name} loses at most {most}" if name else f"{_none_of(len(unclear))} loses more than {most}"
        attributed = f" Reliance on {shortcut} costs no more than that." if shortcut else ""
        return f"{start}, {loses}.{attributed} {basis}"
    intervals = [_lost_points(verdict, classifier) for classifier in unclear]
    available = [interval for interval in intervals if not interval.refused]
    if not available:
        reason = f"there is no {verdict.interval_name} interval: {intervals[0].refused}"
        least, most = (percent(pick(interval.mean for interval in intervals)) for pick in (min, max))
        means = f"mean loss is {least}" if least == most else f"mean losses are {least} to {most}"
        return f"{start}, no statement is possible, because {reason}. The {means} points."
    low, high = min(interval.low for interval in available), max(interval.high for interval in available)
    loss = _loss_between(low, high, f" of {metric}", verdict.loss.reference, has_placebo)
    question = f"{name or any_of(len(unclear))} {f'relies on {shortcut}' if shortcut else f'loses any {metric}'}"
    if low > 0 or high < 0:  # conclusive only without the correction
        unanswered = f"{start}, the data does not show whether {question}, after the correction for multiple testing."
        return f"{unanswered} Without the correction, {loss}. {basis}"
    settled = _settling_sentence(verdict.needed, comparison.medium, verdict.interval_name)
    return f"{start}, the data does not show whether {question}. {_capitalized(loss)}. {basis}{settled}"


def _loss_between(low: float, high: float, of_metric: str, reference: str, has_placebo: bool) -> str:
    """State the bounds of a loss and what it is measured against."""
    against = "beyond that on a placebo" if has_placebo else f"compared with {reference} tasks"
    return f"the loss{of_metric} {against} is between {percent(low)} and {percent(high)} points"


def _settling_sentence(needed: Needed | None, medium: str | None, interval_name: str) -> str:
    """Write what would settle a loss as a sentence after another; empty if nothing practicable would."""
    settled = would_settle(needed, medium, interval_name)
    return f" {settled}, if the loss is as large as it looks." if settled else ""


def would_settle(needed: Needed | None, medium: str | None, interval_name: str) -> str:
    """State how many more tasks, or how much more data, would settle a question; empty if nothing practicable would.

    Args:
        needed: tasks or data required; None if the estimate is not in the direction in question
        medium: what the items are
        interval_name: name of the interval

    Returns:
        A sentence without its period; the number of tasks is rounded to two significant digits.
    """
    if needed is None or (needed.tasks is None and needed.data is None):
        return ""
    if needed.tasks is not None:
        more = counted(int(float(f"{needed.tasks:.2g}")), "more task")
    else:
        items = "classes" if interval_name == "classes" else f"{nouns(medium)} per class"
        more = f"{needed.data:.1f} times as many {items}"
    return f"About {more} would settle it"


def _floor_and_ceiling_remarks(comparison: Comparison, selected: Sequence[Verdict]) -> Iterator[str]:
    """Name the classifiers at chance and those near 100% on the reference."""
    for verdict in selected:
        at_chance, at_ceiling, reference = verdict.at_chance, verdict.at_ceiling, verdict.loss.reference
        if at_chance and (verdict.losing or verdict.gaining or verdict.unclear):
            names = f"{_capitalized(classifier_names(comparison, at_chance))} {_agree(at_chance, 'is', 'are')}"
            tasks = f"{reference} tasks ({comparison.design_name(verdict.block.design)})"
            yield f"{names} at chance on {tasks}, so {_no_skill_to_lose(at_chance)}."
        if at_ceiling:
            names = f"{_capitalized(classifier_names(comparison, at_ceiling))} {_agree(at_ceiling, 'is', 'are')}"
            yield f"{names} near 100% on {reference} tasks, where an interval is too narrow, if there is one."


def shortcut_name(comparison: Comparison, verdict: Verdict) -> str | None:
    """Name what the classifiers may be said to rely on; None if the design does not allow such a statement."""
    shortcut = _RELIED_ON.get(verdict.loss.axis) if verdict.shows_reliance else None
    return shortcut and shortcut.format(context=comparison.context.replace("_", " "))


def _skill_shares(verdict: Verdict) -> dict[Classifier, Interval]:
    return {row.classifier: row.intervals[verdict.metric][verdict.interval_name] for row in verdict.loss.skill.rows}


def _format_share(verdict: Verdict, classifier: Classifier) -> str:
    return _format_percent(_skill_shares(verdict)[classifier])


def _lost_points(verdict: Verdict, classifier: Classifier) -> Interval:
    row = verdict.loss.lost.row(classifier)
    assert row is not None
    return row.intervals[verdict.metric][verdict.interval_name]


def _subject(comparison: Comparison, classifiers: Sequence[Classifier], total: int) -> str:
    """Write e.g. `knn`, `both classifiers`, `all 5 classifiers` or `3 of 5 classifiers (knn, ncc and ridge)`."""
    if len(classifiers) == 1:
        return classifier_name(comparison, classifiers[0])
    if len(classifiers) == total:
        return "both classifiers" if total == 2 else f"all {total} classifiers"
    return f"{len(classifiers)} of {total} classifiers ({classifier_names(comparison, classifiers)})"


def any_of(count: int) -> str:
    """Write the subject of a question about several classifiers: `either classifier`, `any of the 5 classifiers`."""
    return "either classifier" if count == 2 else f"any of the {counted(count, 'classifier')}"


def _none_of(count: int) -> str:
    return "neither classifier" if count == 2 else f"none of the {counted(count, 'classifier')}"


def _capitalized(phrase: str) -> str:
    """Write a phrase as the start of a sentence; names of classifiers keep their case."""
    first, _, rest = phrase.partition(" ")
    return f"{first.capitalize()} {rest}" if first in _LOWERCASE_STARTS and rest else phrase


def _lower_first(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _no_skill_to_lose(classifiers: Sequence[Classifier]) -> str:
    return f"{_agree(classifiers, 'it has', 'they have')} no skill to lose"


def _these_only(medium: str | None) -> str:
    """Limit a statement to the items that were used, as the sampler interval requires."""
    return f"valid for these {nouns(medium)} only"


def condition(label: str, change: AppliedChange | None = None, reference: AppliedChange | None = None) -> str:
    """Say what is special about a task set, e.g. `on fewstab tasks` or `with blur applied`.

    Args:
        label: label of the set
        change, reference: what is changed in its items, and in those of its reference; None if nothing is
    """
    if change is None:
        return f"on {_TASKS.get(label, f'{label} tasks')}"
    if change.swaps_background(reference):
        background = f"to that of {_NEW_BACKGROUND[change.name]}"
        return ", ".join(filter(None, (_ONLY_THE_BACKGROUND, background, change.place)))
    return " ".join(filter(None, (_CHANGED.get(change.name, f"with {change.change} applied"), change.place)))


def condition_of(verdict: Verdict) -> str:
    """Say what is special about the task set of a verdict."""
    return condition(verdict.loss.label, verdict.change, verdict.reference_change)


def _compared_with(reference: str, has_placebo: bool) -> str:
    """Write what a loss is measured against, as the end of a clause."""
    return ", beyond the loss on a placebo" if has_placebo else f", compared with {reference} tasks"


def classifier_names(comparison: Comparison, classifiers: Sequence[Classifier]) -> str:
    """Join the names of classifiers; all methods of an encoder are named together."""
    if len(comparison.encoders) == 1:
        return listed([classifier.method for classifier in classifiers], _NAMED)
    if len(comparison.methods) == 1:
        names = [comparison.encoder_names[classifier.encoder] for classifier in classifiers]
        return str(Classifier(listed(names, _NAMED), classifiers[0].method))
    complete = [
        encoder
        for encoder in dict.fromkeys(classifier.encoder for classifier in classifiers)
        if {classifier for classifier in comparison.classifiers if classifier.encoder == encoder} <= set(classifiers)
    ]
    names = [comparison.encoder_names[encoder] for encoder in complete]
    words = [f"all methods on {listed(names, _NAMED)}"] if complete else []
    singles = [classifier for classifier in classifiers if classifier.encoder not in complete]
    return listed([*words, *map(comparison.classifier_title, singles)], _NAMED)


def classifier_name(comparison: Comparison, classifier: Classifier) -> str:
    """Name a classifier by its method, with its encoder if there are several."""
    return comparison.classifier_title(classifier) if len(comparison.encoders) > 1 else classifier.method


def _agree(classifiers: Sequence[Classifier], singular: str, plural: str) -> str:
    return singular if len(classifiers) == 1 else plural


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def _design_sentence(comparison: Comparison) -> str:
    """State how many classifiers were tested on which tasks."""
    classifiers = len(comparison.classifiers)
    encoders, methods = len(comparison.encoders), len(comparison.methods)
    kinds = f"{counted(encoders, 'encoder')} × {counted(methods, 'method')}"
    if classifiers != encoders * methods:
        kinds = f"{counted(encoders, 'encoder')}, {counted(methods, 'method')}"
    tested = f"{counted(classifiers, 'classifier')} ({kinds}) {'was' if classifiers == 1 else 'were'} tested on"
    blocks = {comparison.design_name(block.design): block for block in comparison.blocks}
    if len({tuple(group.label for group in block.measured) for block in comparison.blocks}) > 1:
        designs = [f"{name} tasks ({_format_task_sets(block.measured)})" for name, block in blocks.items()]
        return f"{tested} {listed(designs)}."
    each = " each" if len(blocks) > 1 else ""
    measured = [group for block in comparison.blocks for group in block.measured]
    return f"{tested} {listed(list(blocks))} tasks: {_format_task_sets(measured)}{each}."


def _format_task_sets(groups: Sequence[Group]) -> str:
    """Write e.g. `600 random tasks and 600 fewstab tasks`, or the range if the numbers differ."""
    sizes: dict[str, set[int]] = {}
    changed = {group.label for group in groups if group.axis == CHANGES}
    for group in groups:
        is_named = group.label not in changed or len(changed) <= _NAMED
        sizes.setdefault(group.label if is_named else CHANGES, set()).add(group.tasks)
    ordered = sorted(sizes, key=lambda label: (label not in REFERENCES, label == CHANGES, label))
    return listed(
        [
            f"{_format_range(sizes[name])} tasks with each of {len(changed)} changes"
            if name == CHANGES
            else f"{_format_range(sizes[name])} {_format_sampler(name)}"
            for name in ordered
        ]
    )


def _format_sampler(label: str) -> str:
    return "tasks of an unknown sampler" if label == UNKNOWN else f"{label} tasks"


def _format_range(numbers: set[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def interval_sentences(comparison: Comparison) -> list[str]:
    """State for which tasks the first interval could not be given, and why: one statement per reason.

    Args:
        comparison: comparison whose intervals are reported

    Returns:
        The statements; empty if the first interval is available everywhere.
    """
    first = comparison.interval_names[0]
    measured = [(block, group) for block in comparison.blocks for group in block.measured]
    sets: dict[str, list[str]] = {}
    for block, group in measured:
        refused = [row.intervals[comparison.metric][first].refused for row in group.rows]
        if refused and refused[0] is not None and all(refused):
            reason = refused[0].partition(";")[0].removeprefix(f"{group.label}: ")  # details are on the page
            sets.setdefault(reason, []).append(f"{group.label} ({comparison.design_name(block.design)})")
    others = [name for name in comparison.interval_names[1:] if name not in comparison.refused]
    instead = f" The {others[0]} interval is used instead" if others else ""
    if others:
        instead += f"; it is {_these_only(comparison.medium)}." if others[0] == "sampler" else "."
    everywhere = len(sets) == 1 and first in comparison.refused
    return [
        f"There is no {first} interval{'' if everywhere else f' for {_sets_of_tasks(labels)}'}: {reason}.{instead}"
        for reason, labels in sets.items()
    ]


def _sets_of_tasks(labels: list[str]) -> str:
    """Name sets of tasks; beyond a few, name the first ones and count the others."""
    if len(labels) <= _NAMED + 1:
        return f"{listed(labels)} tasks"
    return listed([*labels[:_NAMED], f"{len(labels) - _NAMED} other sets of tasks"])


def axis_sentence(
    axis: CardAxis,
    metric: str,
    medium: str | None = None,
    context: str = "context",
    needed: Needed | None = None,
    *,
    with_basis: bool = True,
) -> str:
    """State what an axis shows, in a few short sentences.

    Args:
        axis: axis with everything but its verdict
        metric: metric of the statement
        medium: what the items are
        context: name of the contexts
        needed: what would settle the question if nothing is conclusive
        with_basis: whether to name the sampler interval if the statement is based on it
    """
    if axis.reference is None:
        chance = f" Guessing gives {percent(axis.chance['acc'])}%." if "acc" in axis.chance else ""
        accuracy = axis.estimates["accuracy"]
        return (
            f"On {axis.way}-way {axis.shot}-shot random tasks, its accuracy is {_format_percent(accuracy['acc'])} on "
            f"average and {_format_percent(accuracy['wacc'])} on the worst class of a task.{chance}"
        )
    where = condition(axis.name, axis.tasks.changed, axis.reference.changed)
    lost, share = axis.lost(metric), axis.estimates["skill_lost"][metric]
    if not share.has_mean:
        return f"It is at chance on {axis.reference.sampler} tasks, so it has no skill to lose {where}."
    basis = f" Basis: the sampler interval, {_these_only(medium)}." if with_basis and lost.covers == "sampler" else ""
    if axis.is_background_alone and metric in axis.chance:
        return _background_gives([axis.estimates["accuracy"][metric].shifted(-axis.chance[metric])]) + basis
    has_placebo = "excess" in axis.estimates
    compared = _compared_with(axis.reference.sampler, has_placebo)
    relied_on = _RELIED_ON.get(axis.axis, "") if axis.is_shuffled or axis.swaps_background else ""
    shortcut = relied_on.format(context=context.replace("_", " "))
    skill = f"of its {_METRICS[metric]} above chance"
    if axis.conclusion == "+":
        relies = f"It relies on {shortcut}. " if shortcut else ""
        points = _format_points(lost)
        return f"{relies}{_capitalized(where)}, it loses {_format_percent(share)} {skill} ({points}){compared}.{basis}"
    if axis.conclusion == "-":
        gain = _format_points(lost.negated())
        compared = ", beyond the gain on a placebo" if has_placebo else compared
        return f"{_capitalized(where)}, it does better, not worse: it gains {gain}{compared}.{basis}"
    question = f"whether it relies on {shortcut}" if shortcut else f"whether it loses any {_METRICS[metric]} {where}"
    if math.isnan(lost.low + lost.high):
        return f"No statement is possible on {question}: {lost.refused}. The mean loss is {percent(lost.mean)} points."
    loss = _loss_between(lost.low, lost.high, "", axis.reference.sampler, has_placebo)
    if lost.low > 0 or lost.high < 0:  # conclusive only without the correction
        corrected = "After the correction for multiple testing"
        return f"{corrected}, the data does not show {question}. Without the correction, {loss}.{basis}"
    if _loses_little(axis):
        most = f"{percent(max(axis.at_most or 0.0, 0.0))}% {skill}"
        return f"{_capitalized(where)}, it loses at most {most}{compared}.{basis}"
    settled = _settling_sentence(needed if lost.mean > 0 else None, medium, lost.covers)
    return f"The data does not show {question}. {_capitalized(loss)}.{basis}{settled}"


def card_sentences(card: Card) -> list[str]:
    """Report what was measured and found on a card, in at most six statements; reliance on the background first."""
    tasks = sum(axis.tasks.tasks for axis in card.axes)
    baselines = len(card.axes[0].baselines) if card.axes else 0
    together = f", together with {counted(baselines, 'baseline classifier')}" if baselines else ""
    data = card.name or "the data"
    sentences = [f"{card.title} was tested on {data}: {counted(tasks, 'task')} on {_axis_names(card.axes)}{together}."]
    random_axes = (axis for axis in card.axes if axis.reference is None)
    usual = max(random_axes, key=lambda axis: axis.shot == 5, default=None)
    if usual is not None:
        sentences.append(f"{usual.verdict} Its rank is {usual.rank['accuracy']} classifiers.")
    on_background, reported = _background_statement(card)
    sentences += [on_background] if on_background else []
    stresses = [axis for axis in card.stresses if all(axis is not other for other in reported)]
    losing = [axis for axis in stresses if axis.conclusion == "+"]
    share = {axis.name: axis.estimates["skill_lost"][card.metric] for axis in losing}
    losing.sort(key=lambda axis: -share[axis.name].mean)
    basis = _basis_of(card, card.stresses)
    if losing:
        shares = [f"{axis.name} ({_format_percent(share[axis.name])})" for axis in losing]
        sentences.append(f"It conclusively loses accuracy above chance on {listed(shares)}. Basis: {basis}.")
    gaining = [axis for axis in stresses if axis.conclusion == "-"]
    unclear = [axis.name for axis in stresses if axis.conclusion == "0" and not _loses_little(axis)]
    little = [axis.name for axis in stresses if axis.conclusion == "0" and _loses_little(axis)]
    if little:
        sentences.append(f"It loses at most {LITTLE:g}% of its accuracy above chance on {listed(little)} ({basis}).")
    if unclear:
        sentences.append(
            f"The data does not show whether it loses any {_METRICS[card.metric]} on {listed(unclear)} ({basis})."
        )
    if gaining:
        sentences.append(f"It does better, not worse, on {listed([axis.name for axis in gaining])} ({basis}).")
    if card.missing:
        sentences.append(f"Not measured, for the reasons below: {listed([axis.name for axis in card.missing])}.")
    return sentences[:MOST_CARD_SENTENCES]


def _background_statement(card: Card) -> tuple[str, list[CardAxis]]:
    """State what a swap of the background costs, with what cutting and pasting costs and the background alone gives.

    Returns:
        The statement, and the axes that it reports; without a swap it reports the background alone, or nothing.
    """
    swaps = sorted(
        (axis for axis in card.stresses if axis.swaps_background),
        key=lambda axis: SWAPS.index(axis.tasks.changed.name) if axis.tasks.changed else len(SWAPS),
    )
    alone = [axis for axis in card.stresses if axis.is_background_alone]
    if not swaps:
        return " ".join(axis.verdict for axis in alone), alone
    swap, metric = swaps[0], card.metric
    pasted = [axis for axis in card.stresses if swap.reference and axis.tasks.digest == swap.reference.digest]
    side = swap.tasks.changed and swap.tasks.changed.side
    on_same_side = [axis for axis in alone if axis.tasks.changed and axis.tasks.changed.side == side]
    also = []
    if swap.lost(metric).covers not in OF_NEW_ITEMS:
        also = [axis for axis in swaps if axis.lost(metric).covers in OF_NEW_ITEMS][:1]
    lost, tasks = swap.lost(metric), swap.tasks.tasks
    sentences = [
        axis_sentence(swap, metric, card.medium, needed=needed_for(lost, tasks), with_basis=False),
        *(_card_for_new_items(axis, card) for axis in also),
        *(
            _pasting_costs([share], card.medium)
            for axis in pasted
            if (share := axis.estimates["skill_lost"][metric]).has_mean
        ),
        *(axis_sentence(axis, metric, card.medium, with_basis=False) for axis in on_same_side),
        f"Basis: {_basis_of(card, [swap, *pasted, *on_same_side])}.",
    ]
    return " ".join(filter(None, sentences)), [swap, *also, *pasted, *alone]


def _card_for_new_items(axis: CardAxis, card: Card) -> str:
    """State what another swap of the background shows for new items, after a swap that shows nothing for these."""
    start, items = f"{_capitalized(condition(axis.name, axis.tasks.changed))},", nouns(card.medium)
    basis = f"({level(card.level)} {axis.lost(card.metric).covers} interval)"
    if axis.conclusion == "+":
        amount = f"{_format_percent(axis.estimates['skill_lost'][card.metric])} of its {_METRICS[card.metric]}"
        return f"{start} it loses {amount} above chance, which also holds for new {items} {basis}."
    return _no_loss_for_new_items(start, [axis.lost(card.metric)], items, basis)


def _loses_little(axis: CardAxis) -> bool:
    """Return whether the upper bound of the loss is small."""
    return axis.at_most is not None and axis.at_most <= LITTLE


def _axis_names(axes: Sequence[CardAxis]) -> str:
    changed = [axis for axis in axes if axis.axis == CHANGES]
    if len(changed) <= _NAMED:
        return listed([axis.name for axis in axes]) if axes else "no axis"
    return listed([*(axis.name for axis in axes if axis.axis != CHANGES), f"{len(changed)} changes"])


def _basis_of(card: Card, axes: Sequence[CardAxis]) -> str:
    """Name the intervals that a statement on axes is based on: of several kinds if some could not be given."""
    kinds = dict.fromkeys(axis.lost(card.metric).covers for axis in axes)
    scope = f", {'' if len(kinds) == 1 else 'the former '}{_these_only(card.medium)}"
    ordered = sorted(kinds, key=lambda name: name != "sampler") or [card.covers]
    return f"{level(card.level)} {listed(ordered)} intervals{scope if 'sampler' in kinds else ''}"


def _format_percent(number: Interval) -> str:
    return f"{percent(number.mean)}% {bounds(number)}"


def _format_points(number: Interval) -> str:
    return f"{percent(number.mean)} points {bounds(number)}"
