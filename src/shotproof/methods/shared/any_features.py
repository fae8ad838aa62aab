"""Features of any offset and scale brought to where the defaults of a transductive head work.

Cosines near 1 (features that are not centered) and squared distances of another size (few dimensions, other scales)
make the distances to prototypes small beside a penalty or a graph, which then decides alone: all queries fall into few
classes. So rows are centered on their task's mean, and distances are divided by how much they differ between classes.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from shotproof.methods.shared.gram import inverse_root, mean_weights

Variant = Literal["published", "anywhere"]
VARIANT = "as published, or rows centered and distances scaled in each task, which works on any features"
COLLAPSE = (
    "features that are not centered, or of another scale than the paper's, do that: try variant='anywhere' or the "
    "transform center"
)


def centered_rows(rows: Tensor) -> Tensor:
    """Rows [B, n, d] of length 1, minus their mean over the task, of length 1 again, in float64."""
    unit = torch.nn.functional.normalize(rows.double(), dim=-1)
    return torch.nn.functional.normalize(unit - unit.mean(1, keepdim=True), dim=-1)


def centered_cosines(cosines: Tensor) -> Tensor:
    """The cosines of centered rows, from those of the rows: [B, n, n]."""
    of_rows = cosines.mean(2, keepdim=True)
    products = cosines - of_rows - of_rows.mT + of_rows.mean(1, keepdim=True)
    scale = inverse_root(products.diagonal(dim1=-2, dim2=-1).unsqueeze(1))
    return products * scale * scale.mT


def scale_of(distances: Tensor, wanted: float) -> Tensor:
    """What distances [B, way, m] are multiplied by, to differ by `wanted` between classes on average: [B, 1, 1]."""
    differ = distances.std(1).mean(1)[:, None, None]
    return wanted / differ.clamp_min(torch.finfo(distances.dtype).tiny ** 0.5)


def distances_to_means(support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
    """Half the squared distances of queries to the classes' mean support rows: [B, way, m]."""
    means = mean_weights(labels, way, support.shape[1]).to(support.dtype) @ support
    return torch.cdist(means, query).square() / 2
