"""Choosing and allocating in whole blocks of tasks: arrays in, arrays out."""

from __future__ import annotations

import numpy as np

from shotproof.core import draws
from shotproof.core.arrays import BoolArray, IntArray, UInt64Array


def one_of(possible: BoolArray, random: UInt64Array) -> IntArray:
    """The index of one true value of each row of [n, k], uniformly by the random bits [n]; 0 where none is true."""
    counts = np.cumsum(possible, axis=1, dtype=np.int32)
    rank = draws.below(random, np.maximum(counts[:, -1], 1))
    chosen: IntArray = np.argmax(counts > rank[:, None], axis=1)
    return chosen


def allocate_evenly(capacity: IntArray, order: IntArray, total: int) -> IntArray:
    """Share out `total` between the places of each row, [..., k], none above its capacity, as evenly as these allow.

    A round gives one to every place that has room, in the row's `order` of places, until all are given; the rows must
    have room for them.

    Example:
        >>> allocate_evenly(np.array([[5, 1, 5]]), np.array([[2, 1, 0]]), 6).tolist()
        [[2, 1, 3]]
    """
    room = np.take_along_axis(capacity, order, axis=-1)
    given = np.zeros_like(room)
    left = np.full((*room.shape[:-1], 1), total)
    while left.any():
        more = room > given
        more &= np.cumsum(more, axis=-1) <= left
        given += more
        left -= more.sum(axis=-1, keepdims=True)
    places = np.empty_like(given)
    np.put_along_axis(places, order, given, axis=-1)
    return places
