"""Similarity of images to their concepts and contexts (MetaCoCo, Fig. 2b), as a section of the report or a page."""

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
SHOWN = 1500  # points; more would cover each other


def similarity_scatter(similarity: Similarity) -> Markup | None:
    """Draw each image's similarity to its context's name (x) and its concept's (y); None if no image has a context."""
    to_context, to_concept = (similarity.table.column(name).to_numpy() for name in ("m_te", "m_ce"))
    rows = np.flatnonzero(~np.isnan(to_context))
    if not len(rows):
        return None
    drawn = np.sort(rows[np.argsort(bits(0, rows), kind="stable")[:SHOWN]])
    frame = Box(44, 8, WIDTH - 8, 304)
    values = [*to_context[drawn].tolist(), *to_concept[drawn].tolist()]
    x_scale, y_scale = (
        Scale.around(values, *ends, least=0.005) for ends in ((frame.left, frame.right), (frame.bottom, frame.top))
    )  # one range for both, so that points on the diagonal are equally similar to both
    parts = [
        *x_axis(x_scale, frame, "similarity to the context (M_te)"),
        *y_axis(y_scale, frame, "to the concept (M_ce)"),
    ]
    parts.append(line(frame.left, frame.bottom, frame.right, frame.top, "reference"))
    dots = "".join(f"M{x_scale(to_context[row]):.1f} {y_scale(to_concept[row]):.1f}h0" for row in drawn)
    parts.append(element("path", d=dots, class_="cloud c0"))
    mean_x, mean_y = float(to_context[rows].mean()), float(to_concept[rows].mean())
    parts.append(marker(x_scale(mean_x), y_scale(mean_y), 1, f"mean: M_te {mean_x:.3f}, M_ce {mean_y:.3f}"))
    description = (
        f"Scatter plot of {len(drawn)} of {len(rows)} images: similarity to the context's name against similarity to "
        f"the concept's name. Mean {mean_x:.3f} against {mean_y:.3f}."
    )
    return picture(WIDTH, HEIGHT, description, parts)


def similarity_part(similarity: Similarity) -> dict[str, Any]:
    """Collect the values that the template shows."""
    with_context = similarity.table.num_rows - similarity.table.column("m_te").null_count
    return {
        "overall": similarity.overall,
        "concepts": similarity.concepts.to_pylist(),
        "figure": similarity_scatter(similarity),
        "shown": min(SHOWN, with_context),
        "of": with_context,
        "model": similarity.record.model,
    }


def write_similarity(path: str | Path, similarity: Similarity) -> None:
    """Write the scatter and the means by concept as a separate page."""
    context = {
        "title": "Are images closer to their concepts or to their contexts?",
        "similarity": similarity_part(similarity),
        "content": similarity.to_json(),
    }
    write_text(Path(path), render("similarity_page.html", context))
