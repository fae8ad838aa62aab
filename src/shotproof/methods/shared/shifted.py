"""A task's rows scaled to length 1, its queries shifted so that they have the support's mean, seen through products."""

from __future__ import annotations

import torch
from torch import Tensor

from shotproof.methods.shared.gram import inverse_root, mean_weights


class ShiftedRows:
    """Rows x of length 1, and z: x in the support, x + (mean of the support - mean of the queries) in the queries."""

    def __init__(self, cosines: Tensor, labels: Tensor, way: int) -> None:
        rows, support = cosines.shape[-1], labels.shape[1]
        self._cosines = cosines
        self.is_query = (torch.arange(rows, device=cosines.device) >= support).double()
        means = mean_weights(labels, way, rows)
        self._shift = ((1 - self.is_query) / support - self.is_query / (rows - support)).expand_as(means[:, :1])
        both = torch.cat([means, self._shift], 1) @ cosines
        self._along = both[:, way:]  # the shift times each row
        lengths2 = cosines.diagonal(dim1=-2, dim2=-1).unsqueeze(1)
        self.squares = lengths2 + self.is_query * (2 * self._along + (self._shift * self._along).sum(2, keepdim=True))
        products_with_z = both[:, :way] + self.is_query * (means * self._along).sum(2, keepdim=True)
        of_means = (means * both[:, :way]).sum(2, keepdim=True)
        # |z|^2 [B, 1, rows], and the cosine of z with each class's mean support row [B, way, rows].
        self.cosines = products_with_z * inverse_root(of_means, 1.0) * inverse_root(self.squares, 1.0)

    def products_with_sums(self, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """For weighted sums of the rows z: their products with each x and each z [B, k, rows], and their squares."""
        of_x = weights + (weights * self.is_query).sum(2, keepdim=True) * self._shift
        with_x = of_x @ self._cosines
        with_z = with_x + self.is_query * (of_x * self._along).sum(2, keepdim=True)
        return with_x, with_z, (of_x * with_x).sum(2, keepdim=True)
