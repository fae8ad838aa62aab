"""What is lost at each stage of a network: one curve per encoder, method, design and task set."""

from __future__ import annotations

from dataclasses import dataclass

from shotproof.comparison.comparison import Comparison
from shotproof.core.errors import InputError, UnknownName
from shotproof.core.records import TRANSFORMED
from shotproof.core.spelling import parse_spelling, write_call
from shotproof.results.evaluated import METRICS, Metric
from shotproof.results.origin import Design
from shotproof.stats.intervals import Interval

STAGE = "stage"


@dataclass(frozen=True)
class StageCurve:
    """What a method loses on the features of each stage of an encoder's network, in points.

    encoder: its spelling without a stage
    reference, label: the task set that `label` is measured against, and the set
    gaps: by stage, the first one first: the reference's accuracy minus the set's
    """

    encoder: str
    method: str
    design: Design
    reference: str
    label: str
    gaps: dict[int, Interval]


def stage_curves(comparison: Comparison, metric: str | None = None) -> list[StageCurve]:
    """The gap over the stages of networks, for every method, number of shots and task set.

    Args:
        comparison: of classifiers on features of several stages, such as `lite0(stage=3)`
        metric: `acc` or `wacc`; None: that of the comparison

    Returns:
        One curve per encoder, method, design and task set that is measured against another; those with a single stage
        are left out.

    Raises:
        UnknownName: there is no such metric.

    Example:
        >>> import shotproof as sp
        >>> world = sp.worlds.ShapesWorld(classes=6, items=40)
        >>> shares = {1: "dial(share=0.8)", 2: "dial(share=0.2)"}  # a network that sees ever less of the context
        >>> dials = {stage: sp.encode(world.catalog(), dial).array for stage, dial in shares.items()}
        >>> named = [sp.Features.from_array(world.catalog().items, a, name=f"net(stage={s})") for s, a in dials.items()]
        >>> random = sp.sample(world.catalog(), "random", tasks=20)
        >>> biased = sp.sample(world.catalog(), "fewstab", attributes=world.attributes(), tasks=20)
        >>> results = [sp.evaluate(tasks, one, "ncc") for tasks in (random, biased) for one in named]
        >>> [curve] = sp.analysis.stage_curves(sp.compare(results))
        >>> curve.encoder, curve.method, curve.label, list(curve.gaps)
        ('net', 'ncc', 'fewstab', [1, 2])
        >>> curve.gaps[1].mean > curve.gaps[2].mean
        True
    """
    if metric is not None and metric not in METRICS:
        raise UnknownName("metric", metric, METRICS)
    chosen: Metric = comparison.metric if metric is None else metric
    found: dict[tuple[str, str, Design, str, str], dict[int, Interval]] = {}
    for row in comparison.rows("gap", chosen):
        place = stage_of(row.classifier.encoder)
        if place is not None:
            encoder, stage = place
            key = (encoder, row.classifier.method, row.design, str(row.reference), row.tasks)
            found.setdefault(key, {})[stage] = row.interval
    return [StageCurve(*key, dict(sorted(gaps.items()))) for key, gaps in found.items() if len(gaps) > 1]


def stage_of(encoder: str) -> tuple[str, int] | None:
    """An encoder's spelling without its stage, and the stage; None where it has none.

    Example:
        >>> stage_of("lite0(stage=3) > center")
        ('lite0 > center', 3)
        >>> stage_of("lite0")
    """
    spelled, separator, transforms = encoder.partition(TRANSFORMED)
    try:
        name, argument, options = parse_spelling(spelled)
    except InputError:  # a name of somebody's own
        return None
    stage = options.pop(STAGE, None)
    if type(stage) is not int:
        return None
    whole = name if argument is None else f"{name}:{argument}"
    return f"{write_call(whole, options)}{separator}{transforms}", stage
