"""Quality of mixtures: how audible the background is, whether it overwhelms the foreground, and how alike they are.

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
ACTIVE_DB = 20.0  # the foreground is active in frames that are at most this far below its loudest
MASKED_DB = 20.0  # a background that is further below the foreground than this is inaudible in that frame
HEARD_DBFS = -60.0  # a background below this level is inaudible
MEASURES = ("peak_scaled", "margin_db", "audible", "overwhelmed", "alike")


@dataclass(frozen=True)
class Thresholds(Checked):
    """Thresholds for the quality of a mixture; None sets no threshold.

    `min_audible`: share of all frames in which the background is audible. `max_overwhelmed`: share of the foreground's
    active frames in which the background is louder. `max_alike`: cosine similarity of the two recordings.

    Example:
        >>> Separation(audible=0.2, overwhelmed=0.0, margin_db=9.5).fails(Thresholds(min_audible=0.5))
        'inaudible'
    """

    min_audible: float | None = option(
        None, "smallest share of time in which the background is audible", least=0, most=1
    )
    max_overwhelmed: float | None = option(
        None, "largest share of the foreground's time in which the background is louder", least=0, most=1
    )
    max_alike: float | None = option(None, "largest cosine similarity of the two recordings", least=-1, most=1)


@dataclass(frozen=True)
class Separation:
    """Measures of a background against its foreground.

    `audible` and `overwhelmed` are shares of frames. `margin_db` is the ratio of the foreground's energy in its active
    frames to the background's in the same frames; None if the background is silent there.
    """

    audible: float
    overwhelmed: float
    margin_db: float | None

    def fails(self, thresholds: Thresholds) -> str | None:
        """Return which threshold the mixture fails, if any."""
        if thresholds.min_audible is not None and self.audible < thresholds.min_audible:
            return "inaudible"
        if thresholds.max_overwhelmed is not None and self.overwhelmed > thresholds.max_overwhelmed:
            return "overwhelming"
        return None


def measure_separation(foreground: Samples, background: Samples) -> Separation:
    """Measure a foreground and an amplified background, [n] each, in frames of 50 ms."""
    front, back = _frame_power(foreground), _frame_power(background)
    active = front >= front.max() * 10 ** (-ACTIVE_DB / 10)
    heard = (back > front * 10 ** (-MASKED_DB / 10)) & (back > 10 ** (HEARD_DBFS / 10))
    energy = back[active].mean()
    margin = float(10 * np.log10(front[active].mean() / energy)) if energy else None
    return Separation(float(heard.mean()), float((back > front)[active].mean()), margin)


def cosine_similarities(
    features: npt.NDArray[np.floating], foregrounds: Sequence[int], backgrounds: Sequence[int]
) -> npt.NDArray[np.float64]:
    """Compute the cosine between each foreground and its background, [n], from features [recordings, d].

    Each dimension is standardized over the recordings, so that properties of all sounds do not count as similarity.
    """
    values = np.asarray(features, dtype=np.float64)
    spread = values.std(axis=0)
    values = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1)
    norms = np.linalg.norm(values, axis=1, keepdims=True)
    values /= np.where(norms > 0, norms, 1)
    cosines: npt.NDArray[np.float64] = np.einsum("nd,nd->n", values[list(foregrounds)], values[list(backgrounds)])
    return cosines


def quality_by(mixed: Catalog, column: str) -> list[dict[str, Any]]:
    """Summarize the quality for each value of a column (`label` or `context`) of a mixed catalog, sorted.

    Each record has `sounds`, their number; `peak_scaled`, the share of them that was scaled; and the means of
    `margin_db`, `audible`, `overwhelmed` and, if it was measured, `alike`; None if there is nothing to average.
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
    """Compute the mean square of each full frame, [frames]."""
    frames = samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME)
    power: npt.NDArray[np.float64] = np.einsum("ft,ft->f", frames, frames).astype(np.float64) / FRAME
    return power
