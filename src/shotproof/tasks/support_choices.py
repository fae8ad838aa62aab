"""Rules that choose supports from pools of items: even over contexts or words, typical of the class, easy.

Pure functions on arrays. A pool is a row of a mask [rows, items] over the items of a class, or of the largest class;
the chosen items are columns of it, and every pool has enough of them.
"""

from __future__ import annotations

import numpy as np
import scipy

from shotproof.core.arrays import BoolArray, FloatArray, IntArray, UInt64Array

_NUMBERS_AT_A_TIME = 2**22  # distances compared at a time
_LEAST_GAIN = 1e-6  # share of the total distance below which a swap is rounding, not a gain
_MOST_SWAPS = 1000  # per support; every swap is a gain, so that far fewer are made


def by_turns(
    contexts: IntArray, allowed: BoolArray, keys: UInt64Array, context_keys: UInt64Array, shots: IntArray, cues: int
) -> IntArray:
    """Order the items of pools so that the first ones cover contexts as evenly as they can: [rows, items].

    Contexts take turns in random order, each giving a random item, until it has none left. Items without a context
    come after all others, and those outside of the pool last.

    Args:
        contexts: context of each item, a code; -1 for items without one, [rows, items]
        allowed: pools, [rows, items]
        keys: random numbers that decide the order of the items of a context, [rows, items]
        context_keys: random numbers that decide the order of the contexts, [rows, contexts]
        shots: number of items that are needed, [rows]
        cues: number of contexts that have turns; more only if no so many have enough items; 0 for all
    """
    count, places = context_keys.shape[1], np.arange(contexts.shape[1])
    code = np.where(allowed, np.where(contexts < 0, count, contexts), count + 1)
    order = np.lexsort((keys, code), axis=1)
    in_order = np.take_along_axis(code, order, axis=1)
    is_first = np.diff(in_order, axis=1, prepend=-1) != 0
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, places - np.maximum.accumulate(np.where(is_first, places, 0), axis=1), axis=1)
    sizes = np.stack([np.bincount(row, minlength=count + 2)[:count] for row in code])
    stages, turns = _stages(sizes, context_keys, shots, cues)
    others = np.broadcast_to([count + 1, count + 2], (len(code), 2))  # no context; not in the pool
    stage = np.take_along_axis(np.concatenate([stages, others], axis=1), code, axis=1)
    turn = np.take_along_axis(np.concatenate([turns, others], axis=1), code, axis=1)
    return np.lexsort((turn, rank, stage), axis=1)


def _stages(sizes: IntArray, keys: UInt64Array, shots: IntArray, cues: int) -> tuple[IntArray, IntArray]:
    """Return the stage and the turn of each context, [rows, contexts]; a stage begins when the last has no items left.

    The first stage has all contexts, or the first `cues` in a row of random order that have enough items together. If
    none have, it has the largest, and each of the others is a stage of its own, by size.
    """
    order = np.lexsort((keys, sizes == 0), axis=1)
    turns = _inverse(order)
    if not cues or cues >= sizes.shape[1]:
        return np.zeros_like(turns), turns
    ends = np.cumsum(np.pad(np.take_along_axis(sizes, order, axis=1), ((0, 0), (1, 0))), axis=1)
    has_enough: BoolArray = ends[:, cues:] - ends[:, :-cues] >= shots[:, None]  # of the row that begins with each
    begin = has_enough.argmax(axis=1)[:, None]
    is_in_row = (turns >= begin) & (turns < begin + cues)
    by_size = _inverse(np.lexsort((turns, -sizes), axis=1))
    stages = np.where(has_enough.any(axis=1, keepdims=True), ~is_in_row, np.maximum(by_size - cues + 1, 0))
    return stages.astype(np.int64), turns


def balanced(holds: scipy.sparse.csr_matrix, allowed: BoolArray, keys: UInt64Array, count: int) -> IntArray:
    """Choose items of a class one by one, so that as many hold each word as do not: [rows, count].

    With c of k items holding a word, the next item lowers or raises the sum of (c - (k - c))**2 over all words; it is
    the one with the lowest sum.

    Args:
        holds: whether each item holds each word, [items, words]
        allowed: pools, [rows, items]
        keys: random numbers that decide between items with equal sums, [rows, items]
        count: number of items to choose
    """
    rows, matrix = np.arange(len(allowed)), holds.astype(np.int64)
    available = allowed.copy()
    surplus = np.zeros((len(allowed), matrix.shape[1]), dtype=np.int64)  # holders minus others
    chosen = np.empty((len(allowed), count), dtype=np.int64)
    for place in range(count):
        # The sum of an item is that of (surplus - 1)**2, plus 4 * surplus for each word that it holds.
        sums = np.where(available, np.asarray(matrix @ surplus.T).T, np.iinfo(np.int64).max)
        is_lowest = sums == sums.min(axis=1, keepdims=True)
        chosen[:, place] = np.where(is_lowest & available, keys >> np.uint64(1), _NEVER).argmin(axis=1)
        available[rows, chosen[:, place]] = False
        surplus += 2 * np.asarray(matrix[chosen[:, place]].todense()) - 1
    return chosen


_NEVER = np.uint64(np.iinfo(np.uint64).max)  # above all halved keys


def count_mixed_words(holds: scipy.sparse.csr_matrix, chosen: IntArray) -> IntArray:
    """Count the words that some but not all chosen items of a class hold, [rows], from [rows, count]."""
    rows, count = chosen.shape
    member = scipy.sparse.csr_matrix(
        (np.ones(chosen.size, np.int64), chosen.ravel(), np.arange(rows + 1) * count), (rows, holds.shape[0])
    )
    holders = np.asarray((member @ holds.astype(np.int64)).todense())
    mixed: IntArray = ((holders > 0) & (holders < count)).sum(axis=1)
    return mixed


def medoids(distances: FloatArray, allowed: BoolArray, count: int) -> IntArray:
    """Choose the items of a class from which the others are nearest in sum: k-medoids, [rows, count].

    Medoids are added one by one, each the best, and then swapped with others as long as a swap lowers the sum of the
    distances between the items of the pool and their nearest medoid. With squared Euclidean distances, the only medoid
    is the item nearest to the mean. Nothing is random: of equally good items, the first is chosen.

    Args:
        distances: distances between all items of the class, [items, items]
        allowed: pools, [rows, items]
        count: number of medoids
    """
    step = max(1, _NUMBERS_AT_A_TIME // distances.size)
    parts = [allowed[start : start + step] for start in range(0, len(allowed), step)]
    return np.concatenate([_swapped(distances, part, _greedy_medoids(distances, part, count)) for part in parts])


def _greedy_medoids(distances: FloatArray, allowed: BoolArray, count: int) -> IntArray:
    """Add medoids one by one, [rows, count]."""
    rows = np.arange(len(allowed))
    nearest = np.full(allowed.shape, np.inf)
    available = allowed.copy()
    chosen = np.empty((len(allowed), count), dtype=np.int64)
    for place in range(count):
        sums = np.where(allowed[:, None], np.minimum(nearest[:, None], distances), 0).sum(axis=2)
        chosen[:, place] = _comparable(sums, sums.max(axis=1), available).argmin(axis=1)
        available[rows, chosen[:, place]] = False
        nearest = np.minimum(nearest, distances[chosen[:, place]])
    return chosen


def _swapped(distances: FloatArray, allowed: BoolArray, chosen: IntArray) -> IntArray:
    """Swap medoids with other items as long as this lowers the sum, the best swap first, [rows, count]."""
    if chosen.shape[1] == 1:
        return chosen  # the best one already
    chosen = chosen.copy()
    unfinished = np.arange(len(chosen))
    for _ in range(_MOST_SWAPS):
        medoid, place, is_gain = _best_swap(distances, allowed[unfinished], chosen[unfinished])
        unfinished, medoid, place = unfinished[is_gain], medoid[is_gain], place[is_gain]
        if not len(unfinished):
            break
        chosen[unfinished, place] = medoid
    return chosen


def _best_swap(distances: FloatArray, allowed: BoolArray, chosen: IntArray) -> tuple[IntArray, IntArray, BoolArray]:
    """Find the best item to swap in, the place of the medoid it replaces, and whether this lowers the sum, [rows]."""
    count = chosen.shape[1]
    to_medoids = distances[chosen]  # [rows, count, items]
    nearest = to_medoids.argmin(axis=1)
    first, second = np.moveaxis(np.partition(to_medoids, 1, axis=1)[:, :2], 1, 0)
    # A new medoid i serves the items that it is nearer to; those of the medoid that leaves go to i or to their second.
    with_new = np.where(allowed[:, None], np.minimum(distances, first[:, None]), 0)
    gained = (with_new - np.where(allowed, first, 0)[:, None]).sum(axis=2)
    without = np.where(allowed[:, None], np.minimum(distances, second[:, None]), 0) - with_new
    is_nearest = (nearest[:, None] == np.arange(count)[:, None]).astype(np.float64)  # [rows, count, items]
    change = gained[:, None] + is_nearest @ np.swapaxes(without, 1, 2)  # [rows, count, items]
    available = allowed.copy()
    np.put_along_axis(available, chosen, False, axis=1)
    total = np.where(allowed, first, 0).sum(axis=1)
    comparable = _comparable(change, total, np.broadcast_to(available[:, None], change.shape)).reshape(len(chosen), -1)
    best = comparable.argmin(axis=1)
    place, medoid = np.divmod(best, allowed.shape[1])
    return medoid, place, comparable[np.arange(len(best)), best] < -_LEAST_GAIN


def easiest(features: list[FloatArray], candidates: list[IntArray]) -> tuple[int, FloatArray]:
    """Find which of several candidate supports of a task classifies the pools of its classes best.

    Args:
        features: features of each class's pool, [items, d]
        candidates: candidate supports of each class, places in its pool, [candidates, shots]

    Returns:
        The best candidate, and the loss of each: the mean cross-entropy of nearest class means over the items of all
        pools, with the negative squared distances as logits.
    """
    means = np.stack(
        [values[places].mean(axis=1) for values, places in zip(features, candidates, strict=True)], axis=1
    )  # [candidates, way, d]
    count, way, width = means.shape
    items = np.concatenate(features)
    logits = 2 * (items @ means.reshape(-1, width).T).reshape(-1, count, way) - np.square(means).sum(axis=2)
    highest = logits.max(axis=2, keepdims=True)
    total = np.log(np.exp(logits - highest).sum(axis=2)) + highest[..., 0]
    label = np.repeat(np.arange(way), [len(values) for values in features])
    losses: FloatArray = (total - logits[np.arange(len(items)), :, label]).mean(axis=0)
    return int(losses.astype(np.float32).argmin()), losses


def _comparable(sums: FloatArray, scale: FloatArray, available: BoolArray) -> FloatArray:
    """Return sums relative to a scale [rows] in float32, so that rounding never decides; infinite if not available."""
    scale = np.where(scale > 0, scale, 1).reshape(-1, *[1] * (sums.ndim - 1))
    relative = (sums / scale).astype(np.float32).astype(np.float64)
    return np.where(available, relative, np.inf)


def _inverse(order: IntArray) -> IntArray:
    """Return the rank of each column in an order of columns, [rows, columns]."""
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(order.shape[1]), order.shape), axis=1)
    return rank
