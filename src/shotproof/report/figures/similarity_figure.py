"""Images between their concepts and their contexts (MetaCoCo, Fig. 2b), as a section of the report or a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from shotproof.analysis.similarity import Similarity
from shotproof.core.draws import bits
from shotproof.core.storage.whole_files import write_text
from shotproof.report.figures.svg import Box, Scale, element, line, marker, picture, x_axis, y_axis
from shotproof.report.pages.render import render

WIDTH, HEIGHT = 360, 344
SHOWN = 1500  # points; more would hide each other


def similarity_scatter(found: Similarity) -> Markup | None:
    """Each image's similarity to its context's name across, to its concept's up; None where no image has a context."""
    across, up = (found.table.column(name).to_numpy() for name in ("m_te", "m_ce"))
    rows = np.flatnonzero(~np.isnan(across))
    if not len(rows):
        return None
    shown = np.sort(rows[np.argsort(bits(0, rows), kind="stable")[:SHOWN]])
    frame = Box(44, 8, WIDTH - 8, 304)
    both = [*across[shown].tolist(), *up[shown].tolist()]
    x_scale, y_scale = (
        Scale.around(both, *ends, least=0.005) for ends in ((frame.left, frame.right), (frame.bottom, frame.top))
    )  # one range for both, so that the diagonal is where neither is nearer
    parts = [
        *x_axis(x_scale, frame, "similarity to the context (M_te)"),
        *y_axis(y_scale, frame, "to the concept (M_ce)"),
    ]
    parts.append(line(frame.left, frame.bottom, frame.right, frame.top, "reference"))
    dots = "".join(f"M{x_scale(across[row]):.1f} {y_scale(up[row]):.1f}h0" for row in shown)
    parts.append(element("path", d=dots, class_="cloud c0"))
    mean_x, mean_y = float(across[rows].mean()), float(up[rows].mean())
    parts.append(marker(x_scale(mean_x), y_scale(mean_y), 1, f"mean: M_te {mean_x:.3f}, M_ce {mean_y:.3f}"))
    told = (
        f"Scatter plot of {len(shown)} of {len(rows)} images: similarity to the context's name against similarity to "
        f"the concept's name. Mean {mean_x:.3f} against {mean_y:.3f}."
    )
    return picture(WIDTH, HEIGHT, told, parts)


def similarity_part(found: Similarity) -> dict[str, Any]:
    """What the template shows."""
    with_context = found.table.num_rows - found.table.column("m_te").null_count
    return {
        "overall": found.overall,
        "concepts": found.concepts.to_pylist(),
        "figure": similarity_scatter(found),
        "shown": min(SHOWN, with_context),
        "of": with_context,
        "model": found.record.model,
    }


def write_similarity(path: str | Path, found: Similarity) -> None:
    """Write the scatter and the means by concept as a page of its own."""
    context = {
        "title": "Are images nearer to their concepts or to their contexts?",
        "similarity": similarity_part(found),
        "content": found.to_json(),
    }
    write_text(Path(path), render("similarity_page.html", context))
