"""What a context does to features: how it changes their length, and their direction to the class's clean mean.

SpurAudio, appendix H (Tables 7 and 8, Fig. 13), for any catalog with a `context` column of which one value means none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, UnknownName, did_you_mean
from shotproof.features.features import Features
from shotproof.stats.intervals import Estimate, Interval, check_level

COVERS = "recordings"  # what would be drawn again: new recordings of the same classes


@dataclass(frozen=True)
class CleanAndMixed:
    """One quantity of clean and of mixed items, with intervals over recordings: each counts once, however often mixed.

    `change` is mixed minus clean: of the same recordings where they exist in both ways, else of the two means (Welch).
    `p_value` is the two-sided Mann-Whitney test on all items, as in the paper; mixtures of one recording are not
    independent, so `p_recordings`, the same test with one value per recording, is the one to trust.
    """

    clean: Interval
    mixed: Interval
    change: Interval
    p_value: float
    p_recordings: float


@dataclass(frozen=True)
class Change:
    """The change of a class's features, or of all (`label` None).

    `ratio` is the mixed feature's length over the clean one's, `turn` the angle between the two in degrees, both of
    the same foreground: None where no foreground exists clean and mixed. `pairs` counts the mixed items of which the
    clean one is there. `others`, the yardstick for `cosine`, is the cosine to the clean means of the other classes,
    None where there is one class only.
    """

    label: str | None
    n_clean: int
    n_mixed: int
    pairs: int
    length: CleanAndMixed
    cosine: CleanAndMixed
    others: CleanAndMixed | None
    ratio: Interval | None
    turn: Interval | None

    def to_json(self) -> dict[str, Any]:
        """Plain values; a bound that does not exist is null."""
        found: dict[str, Any] = _without_nan(asdict(self))
        return found


@dataclass(frozen=True)
class FeatureChange:
    """All changes, and per item of the classes that have both: `clean`, `length` and `cosine`, each [n]."""

    overall: Change
    classes: list[Change]
    left_out: list[str]  # classes without clean or without mixed items
    items: list[str]
    clean: npt.NDArray[np.bool_]
    length: FloatArray
    cosine: FloatArray

    def to_json(self) -> dict[str, Any]:
        """The changes as plain values."""
        rows = [change.to_json() for change in self.classes]
        return {"overall": self.overall.to_json(), "classes": rows, "left_out": self.left_out}


def feature_change(
    features: Features,
    catalog: Catalog,
    clean_value: str,
    *,
    context_column: str = "context",
    leave_out: bool = False,
    center: bool = False,
    level: float = 0.95,
) -> FeatureChange:
    """Compare the features of items whose context is `clean_value` with those in any other context.

    Without a column `source` every item is a recording of its own. A mixed item belongs to the clean one with the same
    `foreground`, or, without that column, to the only clean one of its recording.

    Args:
        features: of all items of the catalog
        catalog: with a column of contexts
        clean_value: the context that means none
        context_column: the column of contexts
        leave_out: leave an item's own recording (`source`) out of the clean mean that it is compared with; the paper
            does not
        center: take the mean of all clean features from every feature first: lengths and directions are then seen from
            there, and not from an origin that may be far from all features
        level: of the intervals

    Returns:
        The changes of length and direction, of all items and per class.

    Raises:
        UnknownName: no item has the clean value.
        InputError: no class has clean and mixed items, or a feature has no direction.

    Example:
        >>> import shotproof as sp
        >>> columns = {"item": list("abcd"), "path": list("abcd"), "label": ["dog"] * 4, "split": ["test"] * 4}
        >>> contexts = {"context": ["clean", "rain", "clean", "wind"], "source": ["1", "1", "2", "2"]}
        >>> features = sp.Features.from_array(list("abcd"), [[2.0, 0.0], [1.0, 0.0], [0.0, 4.0], [0.0, 2.0]])
        >>> change = sp.analysis.feature_change(features, sp.Catalog(pa.table({**columns, **contexts})), "clean")
        >>> change.overall.ratio.mean, change.overall.turn.mean
        (0.5, 0.0)
    """
    check_level(level)
    table, clean, left_out = _rows_with_both(catalog, clean_value, context_column)
    items = table.column("item")
    array = features.array[features.rows_of(items)]
    classes, names = _codes(table.column("label").to_pylist())
    recordings = _groups(table, ["source"], classes)
    foregrounds = _groups(table, ["foreground", "source"], classes)
    if center:
        array = array - array[clean].mean(axis=0, dtype=np.float64)
    length = lengths(array)
    if not length.all():
        item = items[int(np.argmin(length))]
        raise InputError(f"geometry: the feature of item '{item}' is all zeros, which has no direction")
    cosine = cosines_to_clean_mean(array, classes, recordings, clean, leave_out)
    if np.isnan(cosine).any():
        label = names[classes[np.argmax(np.isnan(cosine))]]
        other = " besides the item's own recording" if leave_out else ""
        raise InputError(f"geometry: the clean features of class '{label}' have no mean direction{other}")
    others = cosines_to_other_means(array, classes, clean) if len(names) > 1 else None
    data = _Rows(array, recordings, foregrounds, clean, length, cosine, others, level)
    return FeatureChange(
        overall=data.change(None, np.arange(len(array))),
        classes=[data.change(str(name), np.flatnonzero(classes == code)) for code, name in enumerate(names)],
        left_out=left_out,
        items=items.to_pylist(),
        clean=clean,
        length=length,
        cosine=cosine,
    )


def _rows_with_both(
    catalog: Catalog, clean_value: str, column: str
) -> tuple[pa.Table, npt.NDArray[np.bool_], list[str]]:
    """The rows of classes that have clean and mixed items, which of them are clean, and the other classes."""
    table = catalog.table
    if column not in table.column_names:
        raise InputError(f"geometry: the catalog has no column '{column}'{did_you_mean(column, table.column_names)}")
    contexts = pc.fill_null(table.column(column).cast("string"), "").to_numpy(zero_copy_only=False)
    clean = contexts == clean_value
    if not clean.any():
        raise UnknownName(f"value of column '{column}'", clean_value, {*contexts.tolist()})
    labels = table.column("label").to_numpy(zero_copy_only=False)
    both = set(labels[clean]) & set(labels[~clean])
    if not both:
        raise InputError(f"geometry: no class has items in context '{clean_value}' and in another one")
    kept = np.isin(labels, sorted(both))
    return table.filter(kept), clean[kept], sorted(set(labels) - both)


@dataclass(frozen=True)
class _Rows:
    """Items in rows, all of classes that have clean and mixed ones."""

    array: npt.NDArray[Any]
    recordings: IntArray
    foregrounds: IntArray
    clean: npt.NDArray[np.bool_]
    length: FloatArray
    cosine: FloatArray
    others: FloatArray | None
    level: float

    def change(self, label: str | None, rows: IntArray) -> Change:
        """The change over these rows."""
        clean, mixed = rows[self.clean[rows]], rows[~self.clean[rows]]
        pairs = self._pairs(clean, mixed)
        ratio = turn = None
        if len(pairs):
            first, second = pairs[:, 0], pairs[:, 1]
            ratio = self._over_recordings(self.length[second] / self.length[first], self.recordings[second])
            turn = self._over_recordings(turns(self.array, first, second), self.recordings[second])
        return Change(
            label,
            n_clean=len(clean),
            n_mixed=len(mixed),
            pairs=len(pairs),
            length=self._clean_and_mixed(self.length, clean, mixed),
            cosine=self._clean_and_mixed(self.cosine, clean, mixed),
            others=None if self.others is None else self._clean_and_mixed(self.others, clean, mixed),
            ratio=ratio,
            turn=turn,
        )

    def _pairs(self, clean: IntArray, mixed: IntArray) -> IntArray:
        """The rows of the clean item and of the mixed one of each pair, [m, 2]."""
        known, first, counts = np.unique(self.foregrounds[clean], return_index=True, return_counts=True)
        known, partners = known[counts == 1], clean[first[counts == 1]]  # of two clean ones, neither is known to be it
        paired = mixed[np.isin(self.foregrounds[mixed], known)]
        return np.stack([partners[np.searchsorted(known, self.foregrounds[paired])], paired], axis=1)

    def _clean_and_mixed(self, values: FloatArray, clean: IntArray, mixed: IntArray) -> CleanAndMixed:
        of_clean, of_mixed = (_means(values[rows], self.recordings[rows]) for rows in (clean, mixed))
        shared = sorted(of_clean.keys() & of_mixed.keys())
        on_clean, on_mixed = (_estimate(list(means.values())) for means in (of_clean, of_mixed))
        change = _estimate([of_mixed[key] - of_clean[key] for key in shared]) if shared else on_mixed.minus(on_clean)
        return CleanAndMixed(
            clean=on_clean.interval(COVERS, self.level),
            mixed=on_mixed.interval(COVERS, self.level),
            change=change.interval(COVERS, self.level),
            p_value=_mann_whitney(values[clean], values[mixed]),
            p_recordings=_mann_whitney(list(of_clean.values()), list(of_mixed.values())),
        )

    def _over_recordings(self, values: FloatArray, recordings: IntArray) -> Interval:
        return _estimate(list(_means(values, recordings).values())).interval(COVERS, self.level)


def _means(values: FloatArray, groups: IntArray) -> dict[int, float]:
    """The mean of each group's values, by group, in ascending order."""
    found, inverse, counts = np.unique(groups, return_inverse=True, return_counts=True)
    return dict(zip(found.tolist(), (np.bincount(inverse, values) / counts).tolist(), strict=True))


def _estimate(values: Sequence[float]) -> Estimate:
    """The mean of one value per recording."""
    if len(values) == 1:
        return Estimate(values[0], None, "one recording has no variance")
    found = Estimate.over_tasks(values)
    return Estimate(found.mean, None, "all recordings have the same value") if found.refused else found


def _mann_whitney(first: Any, second: Any) -> float:
    from scipy.stats import mannwhitneyu

    if np.ptp([*first, *second]) == 0:
        return 1.0  # nothing but ties
    return float(mannwhitneyu(first, second).pvalue)


def _groups(table: pa.Table, columns: Sequence[str], classes: IntArray) -> IntArray:
    """A number for each class and value of the first of these columns that is there; an item without one is alone."""
    items = table.column("item").to_pylist()
    column = next((name for name in columns if name in table.column_names), "item")
    values = [value or item for value, item in zip(table.column(column).to_pylist(), items, strict=True)]
    return _codes(list(zip(classes.tolist(), values, strict=True)))[0]


def _codes(values: Sequence[Any]) -> tuple[IntArray, list[Any]]:
    """A number for each value, and the values in their order."""
    names = sorted(set(values))
    number = {name: code for code, name in enumerate(names)}
    return np.array([number[value] for value in values], dtype=np.int64), names


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(part) for key, part in value.items()}
    return None if isinstance(value, float) and np.isnan(value) else value


FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
AnyFloats = npt.NDArray[np.floating]

BLOCK = 4096


def lengths(features: AnyFloats) -> FloatArray:
    """The Euclidean norm of each row of [n, d], [n]."""
    found = np.empty(len(features))
    for rows in _blocks(len(features)):
        found[rows] = np.linalg.norm(features[rows].astype(np.float64), axis=1)
    return found


def sums(features: AnyFloats, groups: IntArray, count: int) -> FloatArray:
    """The sum of the rows of each group, [count, d]; a row of a group below 0 counts nowhere."""
    found = np.zeros((count, features.shape[1]))
    for rows in _blocks(len(features)):
        counted = groups[rows] >= 0
        np.add.at(found, groups[rows][counted], features[rows][counted].astype(np.float64))
    return found


def cosines_to_clean_mean(
    features: AnyFloats, classes: IntArray, recordings: IntArray, clean: npt.NDArray[np.bool_], leave_out: bool = False
) -> FloatArray:
    """The cosine of each feature [n, d] to the mean of its class's clean features, [n] (SpurAudio, Eq. 2).

    `leave_out` leaves a feature's own recording out of the mean it is compared with. NaN where either has no length.
    """
    means = sums(features, np.where(clean, classes, -1), int(classes.max()) + 1)
    own = sums(features, np.where(clean, recordings, -1), int(recordings.max()) + 1) if leave_out else None
    found = np.empty(len(features))
    for rows in _blocks(len(features)):
        mean = means[classes[rows]] - (0.0 if own is None else own[recordings[rows]])
        found[rows] = cosines(features[rows], mean)
    return found


def cosines_to_other_means(features: AnyFloats, classes: IntArray, clean: npt.NDArray[np.bool_]) -> FloatArray:
    """The mean cosine of each feature [n, d] to the clean means of the other classes, [n]; there must be some."""
    means = sums(features, np.where(clean, classes, -1), int(classes.max()) + 1)
    with np.errstate(invalid="ignore"):
        means /= np.linalg.norm(means, axis=1, keepdims=True)
    others = (means.sum(axis=0) - means) / (len(means) - 1)
    found = np.empty(len(features))
    for rows in _blocks(len(features)):
        found[rows] = np.einsum("nd,nd->n", features[rows].astype(np.float64), others[classes[rows]])
    return found / lengths(features)


def cosines(first: AnyFloats, second: AnyFloats) -> FloatArray:
    """The cosine of each row of [n, d] to the same row of the other, [n]; NaN where either has no length."""
    a, b = first.astype(np.float64), second.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine: FloatArray = np.einsum("nd,nd->n", a, b) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
    return np.clip(cosine, -1, 1)


def turns(features: AnyFloats, first: IntArray, second: IntArray) -> FloatArray:
    """The angle between the features in rows `first` and in rows `second`, in degrees, [m]."""
    found = np.empty(len(first))
    for rows in _blocks(len(first)):
        a, b = features[first[rows]].astype(np.float64), features[second[rows]].astype(np.float64)
        a /= np.linalg.norm(a, axis=1, keepdims=True)
        b /= np.linalg.norm(b, axis=1, keepdims=True)
        # By the chord, not the arc cosine, which cannot tell small angles from none.
        half_chord = np.linalg.norm(a - b, axis=1) / 2
        found[rows] = np.degrees(2 * np.arcsin(np.minimum(half_chord, 1)))
    return found


def _blocks(count: int) -> Iterator[slice]:
    return (slice(start, start + BLOCK) for start in range(0, count, BLOCK))
