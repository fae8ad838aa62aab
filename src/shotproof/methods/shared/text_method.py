"""Methods that read the texts of a task's classes, as vectors in the space of the features."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from shotproof.core.errors import InputError
from shotproof.methods.method import Method


class TextMethod(Method):
    """A method on features of a model of two towers, such as CLIP or CLAP, that carry the texts of their classes."""

    needs = "texts"

    @abstractmethod
    def scores_with_texts(self, support: Tensor, labels: Tensor, query: Tensor, texts: Tensor) -> Tensor:
        """As `scores`, with the text of each class.

        Args:
            support: [B, n, d]
            labels: [B, n], 0 to way - 1
            query: [B, m, d]
            texts: [B, way, d]

        Returns:
            The scores, [B, m, way].
        """

    def peak_floats_per_task(self, way: int, support: int, query: int, dims: int) -> int:
        """The rows and texts as they are and of length 1."""
        return 3 * (way + support + query) * dims

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """There are none without texts."""
        raise InputError(f"method '{self.spelling}' needs the texts of the classes beside the features")


def unit(rows: Tensor) -> Tensor:
    """Rows in float64, at length 1; zero stays zero."""
    return torch.nn.functional.normalize(rows.double(), dim=-1)
