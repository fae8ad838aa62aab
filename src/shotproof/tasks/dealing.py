"""Choosing and dealing out in whole blocks of tasks: arrays in, arrays out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shotproof import draws
from shotproof.draws import IntArray, UInt64Array


def one_of(possible: npt.NDArray[np.bool_], random: UInt64Array) -> IntArray:
    """The index of one true value of each row of [n, k], uniformly by the random bits [n]; 0 where none is true."""
    counts = np.cumsum(possible, axis=1, dtype=np.int32)
    rank = draws.below(random, np.maximum(counts[:, -1], 1))
    chosen: IntArray = np.argmax(counts > rank[:, None], axis=1)
    return chosen


def deal(capacity: IntArray, order: IntArray, cards: int) -> IntArray:
    """Deal `cards` to the places of each row, [..., k], none above its capacity: as evenly as these allow.

    A round gives one to every place that has room, in the row's `order` of places, until all are dealt; the rows must
    have room for them.
    """
    room = np.take_along_axis(capacity, order, axis=-1)
    dealt = np.zeros_like(room)
    left = np.full((*room.shape[:-1], 1), cards)
    while left.any():
        given = room > dealt
        given &= np.cumsum(given, axis=-1) <= left
        dealt += given
        left -= given.sum(axis=-1, keepdims=True)
    places = np.empty_like(dealt)
    np.put_along_axis(places, order, dealt, axis=-1)
    return places
