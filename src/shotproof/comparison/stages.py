"""Loss at each stage of a network: one curve per encoder, method, design and task set."""

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
    """Loss of a method on the features of each stage of an encoder's network, in points.

    encoder: spelling of the encoder without the stage
    reference, label: labels of the reference and of the task set
    gaps: accuracy on the reference minus that on the task set, by stage in ascending order
    """

    encoder: str
    method: str
    design: Design
    reference: str
    label: str
    gaps: dict[int, Interval]


def stage_curves(comparison: Comparison, metric: str | None = None) -> list[StageCurve]:
    """Collect the gap over the stages of networks, for every method, number of shots and task set.

    Args:
        comparison: comparison of classifiers on features of several stages, such as `lite0(stage=3)`
        metric: `acc` or `wacc`; None for that of the comparison

    Returns:
        One curve per encoder, method, design and task set that has a reference; curves with a single stage are left
        out.

    Raises:
        UnknownName: if there is no such metric.

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
    by_metric: Metric = comparison.metric if metric is None else metric
    gaps_by_curve: dict[tuple[str, str, Design, str, str], dict[int, Interval]] = {}
    for row in comparison.rows("gap", by_metric):
        split = stage_of(row.classifier.encoder)
        if split is not None:
            encoder, stage = split
            key = (encoder, row.classifier.method, row.design, str(row.reference), row.tasks)
            gaps_by_curve.setdefault(key, {})[stage] = row.interval
    return [StageCurve(*key, dict(sorted(gaps.items()))) for key, gaps in gaps_by_curve.items() if len(gaps) > 1]


def stage_of(encoder: str) -> tuple[str, int] | None:
    """Split the spelling of an encoder into the spelling without its stage and the stage; None if it has no stage.

    Example:
        >>> stage_of("lite0(stage=3) > center")
        ('lite0 > center', 3)
        >>> stage_of("lite0")
    """
    spelling, separator, transforms = encoder.partition(TRANSFORMED)
    try:
        name, argument, options = parse_spelling(spelling)
    except InputError:  # a custom name
        return None
    stage = options.pop(STAGE, None)
    if type(stage) is not int:
        return None
    full_name = name if argument is None else f"{name}:{argument}"
    return f"{write_call(full_name, options)}{separator}{transforms}", stage
