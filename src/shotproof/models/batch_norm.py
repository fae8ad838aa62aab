"""Batch norm by the statistics of each batch, without a trace in the network: what inner loops need."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from torch import nn


@contextlib.contextmanager
def stateless_batch_norm(network: nn.Module) -> Iterator[None]:
    """Within it, batch norm in training mode leaves its running statistics alone, as `torch.func` demands.

    Example:
        >>> import torch
        >>> norm = nn.BatchNorm2d(2)
        >>> with stateless_batch_norm(norm):
        ...     _ = norm(torch.ones(3, 2, 4, 4))
        >>> norm.running_mean.tolist(), int(norm.num_batches_tracked)
        ([0.0, 0.0], 0)
    """
    kept = [one for one in network.modules() if isinstance(one, nn.modules.batchnorm._BatchNorm)]
    tracked = [one.track_running_stats for one in kept]
    for one in kept:
        one.track_running_stats = False
    try:
        yield
    finally:
        for one, before in zip(kept, tracked, strict=True):
            one.track_running_stats = before
