"""What contrastive objectives share: the projection of vectors to where views are compared."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional


class Projection(nn.Module):
    """Two layers from vectors [b, dim] to rows of length 1, [b, to]; scores do without it.

    Vectors behind a ReLU have a large mean in common, so that all cosines are near 1 at the start: batch norm takes it
    away, as in SimCLR's own code and in MoCo v3.
    """

    def __init__(self, dim: int, to: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(dim, dim, bias=False),
            nn.BatchNorm1d(dim),
            nn.ReLU(inplace=True),
            nn.Linear(dim, to, bias=False),
            nn.BatchNorm1d(to, affine=False),
        )

    def forward(self, vectors: Tensor) -> Tensor:
        """The rows."""
        return functional.normalize(self.layers(vectors), dim=1)
