"""Effect of contexts on features: change in length, and in direction relative to the class's clean mean.

SpurAudio, appendix H (Tables 7 and 8, Fig. 13), for any catalog with a column `context` that has a value for items
without one.
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

COVERS = "recordings"  # intervals are over new recordings of the same classes


@dataclass(frozen=True)
class CleanAndMixed:
    """One quantity for clean and mixed items, with intervals over recordings.

    Each recording counts once, however many mixtures it has. `change` is mixed minus clean: within recordings if some
    exist both clean and mixed, otherwise the difference of the two means (Welch). `p_value` is the two-sided
    Mann-Whitney test on all items, as in the paper. Mixtures of one recording are not independent, so prefer
    `p_recordings`, the same test with one value per recording.
    """

    clean: Interval
    mixed: Interval
    change: Interval
    p_value: float
    p_recordings: float


@dataclass(frozen=True)
class Change:
    """Change of the features of one class, or of all classes (`label` None).

    `ratio` is the mixed feature's length over the clean one's, `turn` the angle between the two in degrees, both for
    the same foreground; None if no foreground exists both clean and mixed. `pairs` is the number of mixed items whose
    clean counterpart exists. `others`, the baseline for `cosine`, is the cosine to the clean means of the other
    classes; None if there is only one class.
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
        """Convert to plain values; an undefined bound is null."""
        values: dict[str, Any] = _replace_nan(asdict(self))
        return values


@dataclass(frozen=True)
class FeatureChange:
    """Changes overall and per class, with `clean`, `length` and `cosine` of each compared item, each [n]."""

    overall: Change
    classes: list[Change]
    left_out: list[str]  # classes without clean or mixed items
    items: list[str]
    clean: npt.NDArray[np.bool_]
    length: FloatArray
    cosine: FloatArray

    def to_json(self) -> dict[str, Any]:
        """Convert the changes to plain values."""
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

    Without a `source` column, every item is its own recording. A mixed item is paired with the clean item of the same
    `foreground` or, without that column, with the only clean item of its recording.

    Args:
        features: features of all items of the catalog
        catalog: catalog with a column of contexts
        clean_value: value that marks items without a context
        context_column: name of the column of contexts
        leave_out: whether to exclude an item's own recording (`source`) from the clean mean that it is compared with;
            the paper does not
        center: whether to subtract the mean of all clean features first, so that lengths and directions are relative
            to it and not to an origin that may be far from all features
        level: confidence level of the intervals

    Returns:
        The changes of length and direction, overall and per class.

    Raises:
        UnknownName: no item has the clean value.
        InputError: no class has both clean and mixed items, or a feature has no direction.

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
    table, clean, left_out = _select_comparable_rows(catalog, clean_value, context_column)
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
        raise InputError(f"geometry: the feature of item '{item}' is all zeros and has no direction")
    cosine = cosines_to_clean_mean(array, classes, recordings, clean, leave_out)
    if np.isnan(cosine).any():
        label = names[classes[np.argmax(np.isnan(cosine))]]
        without_recording = " without the item's own recording" if leave_out else ""
        raise InputError(f"geometry: the clean features of class '{label}' have no mean direction{without_recording}")
    other_cosine = cosines_to_other_means(array, classes, clean) if len(names) > 1 else None
    item_rows = _Rows(array, recordings, foregrounds, clean, length, cosine, other_cosine, level)
    return FeatureChange(
        overall=item_rows.change(None, np.arange(len(array))),
        classes=[item_rows.change(str(name), np.flatnonzero(classes == code)) for code, name in enumerate(names)],
        left_out=left_out,
        items=items.to_pylist(),
        clean=clean,
        length=length,
        cosine=cosine,
    )


def _select_comparable_rows(
    catalog: Catalog, clean_value: str, column: str
) -> tuple[pa.Table, npt.NDArray[np.bool_], list[str]]:
    """Return the rows of classes with clean and mixed items, a mask of the clean rows, and the other classes."""
    table = catalog.table
    if column not in table.column_names:
        raise InputError(f"geometry: the catalog has no column '{column}'{did_you_mean(column, table.column_names)}")
    contexts = pc.fill_null(table.column(column).cast("string"), "").to_numpy(zero_copy_only=False)
    clean = contexts == clean_value
    if not clean.any():
        raise UnknownName(f"value of column '{column}'", clean_value, {*contexts.tolist()})
    labels = table.column("label").to_numpy(zero_copy_only=False)
    comparable_labels = set(labels[clean]) & set(labels[~clean])
    if not comparable_labels:
        raise InputError(f"geometry: no class has items both in context '{clean_value}' and in another context")
    is_comparable = np.isin(labels, sorted(comparable_labels))
    return table.filter(is_comparable), clean[is_comparable], sorted(set(labels) - comparable_labels)


@dataclass(frozen=True)
class _Rows:
    """Items as rows, all from classes with both clean and mixed items."""

    array: npt.NDArray[Any]
    recordings: IntArray
    foregrounds: IntArray
    clean: npt.NDArray[np.bool_]
    length: FloatArray
    cosine: FloatArray
    other_cosine: FloatArray | None
    level: float

    def change(self, label: str | None, rows: IntArray) -> Change:
        """Compute the change over these rows."""
        clean, mixed = rows[self.clean[rows]], rows[~self.clean[rows]]
        pairs = self._pairs(clean, mixed)
        ratio = turn = None
        if len(pairs):
            paired_clean, paired_mixed = pairs[:, 0], pairs[:, 1]
            ratio = self._over_recordings(
                self.length[paired_mixed] / self.length[paired_clean], self.recordings[paired_mixed]
            )
            turn = self._over_recordings(turns(self.array, paired_clean, paired_mixed), self.recordings[paired_mixed])
        return Change(
            label,
            n_clean=len(clean),
            n_mixed=len(mixed),
            pairs=len(pairs),
            length=self._clean_and_mixed(self.length, clean, mixed),
            cosine=self._clean_and_mixed(self.cosine, clean, mixed),
            others=None if self.other_cosine is None else self._clean_and_mixed(self.other_cosine, clean, mixed),
            ratio=ratio,
            turn=turn,
        )

    def _pairs(self, clean: IntArray, mixed: IntArray) -> IntArray:
        """Return the clean and the mixed row of each pair, [m, 2]."""
        foregrounds, first_index, counts = np.unique(self.foregrounds[clean], return_index=True, return_counts=True)
        foregrounds, clean_partners = (
            foregrounds[counts == 1],
            clean[first_index[counts == 1]],
        )  # with two clean items, the pairing is ambiguous
        paired = mixed[np.isin(self.foregrounds[mixed], foregrounds)]
        return np.stack([clean_partners[np.searchsorted(foregrounds, self.foregrounds[paired])], paired], axis=1)

    def _clean_and_mixed(self, values: FloatArray, clean: IntArray, mixed: IntArray) -> CleanAndMixed:
        """Estimate one quantity for clean and mixed rows, and its change."""
        clean_means, mixed_means = (_means(values[rows], self.recordings[rows]) for rows in (clean, mixed))
        shared = sorted(clean_means.keys() & mixed_means.keys())
        clean_estimate, mixed_estimate = (_estimate(list(means.values())) for means in (clean_means, mixed_means))
        change = (
            _estimate([mixed_means[key] - clean_means[key] for key in shared])
            if shared
            else mixed_estimate.minus(clean_estimate)
        )
        return CleanAndMixed(
            clean=clean_estimate.interval(COVERS, self.level),
            mixed=mixed_estimate.interval(COVERS, self.level),
            change=change.interval(COVERS, self.level),
            p_value=_mann_whitney(values[clean], values[mixed]),
            p_recordings=_mann_whitney(list(clean_means.values()), list(mixed_means.values())),
        )

    def _over_recordings(self, values: FloatArray, recordings: IntArray) -> Interval:
        """Compute the interval of the mean over recordings."""
        return _estimate(list(_means(values, recordings).values())).interval(COVERS, self.level)


def _means(values: FloatArray, groups: IntArray) -> dict[int, float]:
    """Compute the mean of each group's values, by group in ascending order."""
    unique_groups, inverse, counts = np.unique(groups, return_inverse=True, return_counts=True)
    return dict(zip(unique_groups.tolist(), (np.bincount(inverse, values) / counts).tolist(), strict=True))


def _estimate(values: Sequence[float]) -> Estimate:
    """Estimate the mean of one value per recording."""
    if len(values) == 1:
        return Estimate(values[0], None, "one recording has no variance")
    estimate = Estimate.over_tasks(values)
    return Estimate(estimate.mean, None, "all recordings have the same value") if estimate.refused else estimate


def _mann_whitney(first: Any, second: Any) -> float:
    """Compute the two-sided Mann-Whitney p-value."""
    from scipy.stats import mannwhitneyu

    if np.ptp([*first, *second]) == 0:
        return 1.0  # all values are tied
    return float(mannwhitneyu(first, second).pvalue)


def _groups(table: pa.Table, columns: Sequence[str], classes: IntArray) -> IntArray:
    """Return the group number of each item, by class and the first of these columns that exists.

    An item without a value is its own group.
    """
    items = table.column("item").to_pylist()
    column = next((name for name in columns if name in table.column_names), "item")
    values = [value or item for value, item in zip(table.column(column).to_pylist(), items, strict=True)]
    return _codes(list(zip(classes.tolist(), values, strict=True)))[0]


def _codes(values: Sequence[Any]) -> tuple[IntArray, list[Any]]:
    """Encode values as integers, and return the sorted distinct values."""
    names = sorted(set(values))
    code_of = {name: code for code, name in enumerate(names)}
    return np.array([code_of[value] for value in values], dtype=np.int64), names


def _replace_nan(value: Any) -> Any:
    """Replace NaN by None in nested dicts."""
    if isinstance(value, dict):
        return {key: _replace_nan(item) for key, item in value.items()}
    return None if isinstance(value, float) and np.isnan(value) else value


FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
AnyFloats = npt.NDArray[np.floating]

BLOCK = 4096


def lengths(features: AnyFloats) -> FloatArray:
    """Compute the Euclidean norm of each row of [n, d], [n]."""
    norms = np.empty(len(features))
    for rows in _row_blocks(len(features)):
        norms[rows] = np.linalg.norm(features[rows].astype(np.float64), axis=1)
    return norms


def sums(features: AnyFloats, groups: IntArray, count: int) -> FloatArray:
    """Sum the rows of each group, [count, d]; rows with a negative group are ignored."""
    totals = np.zeros((count, features.shape[1]))
    for rows in _row_blocks(len(features)):
        in_group = groups[rows] >= 0
        np.add.at(totals, groups[rows][in_group], features[rows][in_group].astype(np.float64))
    return totals


def cosines_to_clean_mean(
    features: AnyFloats, classes: IntArray, recordings: IntArray, clean: npt.NDArray[np.bool_], leave_out: bool = False
) -> FloatArray:
    """Compute the cosine of each feature [n, d] to the mean of its class's clean features, [n] (SpurAudio, Eq. 2).

    `leave_out` excludes a feature's own recording from the mean. NaN if either vector is zero.
    """
    means = sums(features, np.where(clean, classes, -1), int(classes.max()) + 1)
    recording_sums = sums(features, np.where(clean, recordings, -1), int(recordings.max()) + 1) if leave_out else None
    cosine = np.empty(len(features))
    for rows in _row_blocks(len(features)):
        mean = means[classes[rows]] - (0.0 if recording_sums is None else recording_sums[recordings[rows]])
        cosine[rows] = cosines(features[rows], mean)
    return cosine


def cosines_to_other_means(features: AnyFloats, classes: IntArray, clean: npt.NDArray[np.bool_]) -> FloatArray:
    """Compute each feature's mean cosine to the clean means of the other classes: [n, d] to [n]; needs two classes."""
    means = sums(features, np.where(clean, classes, -1), int(classes.max()) + 1)
    with np.errstate(invalid="ignore"):
        means /= np.linalg.norm(means, axis=1, keepdims=True)
    other_means = (means.sum(axis=0) - means) / (len(means) - 1)
    products = np.empty(len(features))
    for rows in _row_blocks(len(features)):
        products[rows] = np.einsum("nd,nd->n", features[rows].astype(np.float64), other_means[classes[rows]])
    return products / lengths(features)


def cosines(first: AnyFloats, second: AnyFloats) -> FloatArray:
    """Compute the cosine between the same rows of two arrays [n, d], [n]; NaN if either row is zero."""
    a, b = first.astype(np.float64), second.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine: FloatArray = np.einsum("nd,nd->n", a, b) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
    return np.clip(cosine, -1, 1)


def turns(features: AnyFloats, first: IntArray, second: IntArray) -> FloatArray:
    """Compute the angle between features in rows `first` and rows `second`, in degrees, [m]."""
    angles = np.empty(len(first))
    for rows in _row_blocks(len(first)):
        a, b = features[first[rows]].astype(np.float64), features[second[rows]].astype(np.float64)
        a /= np.linalg.norm(a, axis=1, keepdims=True)
        b /= np.linalg.norm(b, axis=1, keepdims=True)
        # From the chord: the arc cosine loses all precision for small angles.
        half_chord = np.linalg.norm(a - b, axis=1) / 2
        angles[rows] = np.degrees(2 * np.arcsin(np.minimum(half_chord, 1)))
    return angles


def _row_blocks(count: int) -> Iterator[slice]:
    """Yield slices of `BLOCK` rows."""
    return (slice(start, start + BLOCK) for start in range(0, count, BLOCK))
