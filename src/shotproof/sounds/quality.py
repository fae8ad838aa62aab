"""What can be measured of a mixture's quality: is the background heard, does it drown the foreground, are they alike.

SpurAudio's annotators scored the same by ear. Each measure is a column of the mixed catalog.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.core.options import Checked, option
from shotproof.media.clip import RATE, Samples

FRAME = RATE // 20  # 50 ms
ACTIVE_DB = 20.0  # the foreground sounds in frames no more than this below its loudest
MASKED_DB = 20.0  # a background more than this below the foreground is not heard in that frame
HEARD_DBFS = -60.0  # nor is one that is more quiet than this
MEASURES = ("peak_scaled", "margin_db", "audible", "overwhelmed", "alike")


@dataclass(frozen=True)
class Thresholds(Checked):
    """What a mixture must keep to; None leaves a measure alone.

    `min_audible`: share of all frames in which the background can be heard. `max_overwhelmed`: share of the
    foreground's frames in which the background is the stronger. `max_alike`: cosine between the two recordings.

    Example:
        >>> Separation(audible=0.2, overwhelmed=0.0, margin_db=9.5).fails(Thresholds(min_audible=0.5))
        'inaudible'
    """

    min_audible: float | None = option(None, "least share of time in which the background is heard", least=0, most=1)
    max_overwhelmed: float | None = option(
        None, "largest share of the foreground's time in which the background is stronger", least=0, most=1
    )
    max_alike: float | None = option(None, "largest cosine between the two recordings", least=-1, most=1)


@dataclass(frozen=True)
class Separation:
    """How a background stands against its foreground.

    `margin_db` is the energy of the foreground's frames over the background's in the same frames; None without one.
    """

    audible: float
    overwhelmed: float
    margin_db: float | None

    def fails(self, thresholds: Thresholds) -> str | None:
        """The measure that breaks its threshold, if one does."""
        if thresholds.min_audible is not None and self.audible < thresholds.min_audible:
            return "inaudible"
        if thresholds.max_overwhelmed is not None and self.overwhelmed > thresholds.max_overwhelmed:
            return "overwhelming"
        return None


def separation(foreground: Samples, background: Samples) -> Separation:
    """Measures of a foreground and an amplified background, [n] each, in frames of 50 ms."""
    front, back = _frame_power(foreground), _frame_power(background)
    active = front >= front.max() * 10 ** (-ACTIVE_DB / 10)
    heard = (back > front * 10 ** (-MASKED_DB / 10)) & (back > 10 ** (HEARD_DBFS / 10))
    energy = back[active].mean()
    margin = float(10 * np.log10(front[active].mean() / energy)) if energy else None
    return Separation(float(heard.mean()), float((back > front)[active].mean()), margin)


def alike(
    features: npt.NDArray[np.floating], foregrounds: Sequence[int], backgrounds: Sequence[int]
) -> npt.NDArray[np.float64]:
    """Cosine between the features of each foreground and its background, [n], from features [recordings, d].

    Each dimension is standardized over the recordings: what all sounds have in common makes none alike.
    """
    values = np.asarray(features, dtype=np.float64)
    spread = values.std(axis=0)
    values = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1)
    length = np.linalg.norm(values, axis=1, keepdims=True)
    values /= np.where(length > 0, length, 1)
    cosines: npt.NDArray[np.float64] = np.einsum("nd,nd->n", values[list(foregrounds)], values[list(backgrounds)])
    return cosines


def quality_by(mixed: Catalog, column: str) -> list[dict[str, Any]]:
    """One record per value of a column (`label` or `context`) of a mixed catalog, sorted.

    `sounds`: how many; `peak_scaled`: the share that was scaled; and the means of `margin_db`, `audible`,
    `overwhelmed` and, where it was measured, `alike`; None where there is nothing to average.
    """
    table = mixed.table
    table = table.append_column("peak_scaled", pc.cast(pc.not_equal(table.column("peak_scale"), 1), pa.float64()))
    measures = [name for name in MEASURES if name in table.column_names]
    means = table.group_by(column, use_threads=False).aggregate(
        [([], "count_all"), *((name, "mean") for name in measures)]
    )
    names = {"count_all": "sounds", **{f"{name}_mean": name for name in measures}}
    means = means.select([column, *names]).rename_columns([column, *names.values()])
    records: list[dict[str, Any]] = means.sort_by(column).to_pylist()
    return records


def _frame_power(samples: Samples) -> npt.NDArray[np.float64]:
    """Mean square of each whole frame, [frames]."""
    frames = samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME)
    power: npt.NDArray[np.float64] = np.einsum("ft,ft->f", frames, frames).astype(np.float64) / FRAME
    return power
