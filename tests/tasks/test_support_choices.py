"""Rules that choose supports, against brute force."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from shotproof.core.arrays import BoolArray, FloatArray, IntArray, UInt64Array
from shotproof.tasks.support_choices import balanced, by_turns, count_mixed_words, easiest, medoids


def keys_of(rng: np.random.Generator, *shape: int) -> UInt64Array:
    return rng.integers(0, 2**63, size=shape).astype(np.uint64)


def pools_of(rng: np.random.Generator, rows: int, items: int, least: int) -> BoolArray:
    """Masks with at least so many items each."""
    allowed = rng.random((rows, items)) < 0.7
    for row in allowed:
        row[rng.permutation(items)[:least]] = True
    return allowed


@given(seed=st.integers(0, 10**6), shots=st.integers(1, 6), cues=st.integers(0, 5))
def test_turns_cover_as_many_contexts_as_they_can_evenly(seed: int, shots: int, cues: int) -> None:
    rng = np.random.default_rng(seed)
    contexts = rng.integers(-1, 4, size=(8, 12))
    allowed = pools_of(rng, 8, 12, shots)
    order = by_turns(contexts, allowed, keys_of(rng, 8, 12), keys_of(rng, 8, 4), np.full(8, shots), cues)
    for row in range(8):
        assert sorted(order[row]) == list(range(12))
        chosen = order[row, :shots]
        assert allowed[row, chosen].all()
        sizes = [int((allowed[row] & (contexts[row] == context)).sum()) for context in range(4)]
        present = [size for size in sizes if size]
        covered = set(contexts[row, chosen].tolist()) - {-1}
        counts = [int((contexts[row, chosen] == context).sum()) for context in range(4)]
        if not cues or cues >= len(present):
            assert len(covered) == min(shots, len(present))
        elif any(sum(group) >= shots for group in combinations(present, cues)):
            fits_in_a_row = all(
                any(sum(order[i : i + cues]) >= shots for i in range(len(order) - cues + 1))
                for order in permutations(present)
            )
            largest = sum(sorted(present)[-cues:]) >= shots
            if fits_in_a_row or largest:
                assert len(covered) == min(shots, cues)
        else:  # the largest, and no more than it takes
            fewest = next((n for n in range(1, 5) if sum(sorted(present)[-n:]) >= shots), len(present))
            assert len(covered) == fewest
        # Even: no context has two more than another that has items left in the same stage.
        if not cues:
            for context in range(4):
                if counts[context] < sizes[context]:
                    assert max(counts) <= counts[context] + 1
        assert (contexts[row, chosen] >= 0).all() or sum(sizes) < shots


def test_turns_are_random() -> None:
    rng = np.random.default_rng(0)
    contexts, allowed = np.tile([0, 0, 0, 1, 1, 2], (3000, 1)), np.ones((3000, 6), dtype=bool)
    order = by_turns(contexts, allowed, keys_of(rng, 3000, 6), keys_of(rng, 3000, 3), np.full(3000, 1), 0)
    shares = np.bincount(order[:, 0], minlength=6) / 3000
    np.testing.assert_allclose(shares, [1 / 9] * 3 + [1 / 6] * 2 + [1 / 3], atol=0.03)


def unevenness(holds: IntArray, chosen: list[int]) -> int:
    """Sum over all words of the squared difference between holders and others."""
    holders = holds[chosen].sum(axis=0)
    return int(np.square(2 * holders - len(chosen)).sum())


@given(seed=st.integers(0, 10**6), shots=st.integers(1, 5))
def test_every_next_item_makes_words_most_even(seed: int, shots: int) -> None:
    rng = np.random.default_rng(seed)
    holds = (rng.random((9, 5)) < 0.4).astype(int)
    allowed = pools_of(rng, 6, 9, shots)
    chosen = balanced(scipy.sparse.csr_matrix(holds.astype(bool)), allowed, keys_of(rng, 6, 9), shots)
    for row in range(6):
        so_far: list[int] = []
        for item in chosen[row].tolist():
            possible = [other for other in np.flatnonzero(allowed[row]).tolist() if other not in so_far]
            assert item in possible
            assert unevenness(holds, [*so_far, item]) == min(unevenness(holds, [*so_far, other]) for other in possible)
            so_far.append(item)
    mixed = [int(((holds[row].sum(axis=0) > 0) & (holds[row].sum(axis=0) < shots)).sum()) for row in chosen]
    assert count_mixed_words(scipy.sparse.csr_matrix(holds.astype(bool)), chosen).tolist() == mixed


def squared_distances(values: FloatArray) -> FloatArray:
    distances: FloatArray = np.square(values[:, None] - values).sum(axis=2)
    return distances


def total(distances: FloatArray, pool: IntArray, chosen: IntArray) -> float:
    return float(distances[np.ix_(chosen, pool)].min(axis=0).sum())


@given(seed=st.integers(0, 10**6), count=st.integers(1, 4))
def test_medoids_are_near_the_best_and_no_swap_improves_them(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(9, 3))
    distances = squared_distances(values)
    allowed = pools_of(rng, 5, 9, count)
    for row, chosen in zip(allowed, medoids(distances, allowed, count), strict=True):
        pool = np.flatnonzero(row)
        assert len(set(chosen)) == count
        assert set(chosen) <= set(pool)
        reached = total(distances, pool, chosen)
        best = min(total(distances, pool, np.array(group)) for group in combinations(pool, count))
        assert reached <= 1.6 * best + 1e-9
        if count == 1:
            assert reached == pytest.approx(best)
            nearest = pool[np.square(values[pool] - values[pool].mean(axis=0)).sum(axis=1).argmin()]
            assert chosen.tolist() == [nearest]
        swapped = [
            np.array([*(set(chosen) - {leaves}), enters]) for leaves in chosen for enters in set(pool) - set(chosen)
        ]
        assert all(total(distances, pool, group) >= reached * (1 - 1e-5) for group in swapped)


def test_medoids_do_not_depend_on_the_rows_beside_them() -> None:
    rng = np.random.default_rng(3)
    distances = squared_distances(rng.normal(size=(30, 6)))
    allowed = pools_of(rng, 40, 30, 5)
    together = medoids(distances, allowed, 5)
    alone = np.concatenate([medoids(distances, allowed[row : row + 1], 5) for row in range(40)])
    np.testing.assert_array_equal(together, alone)


def test_medoids_of_equal_items_are_distinct() -> None:
    allowed = np.array([[False, True, True, True]])
    assert sorted(medoids(np.zeros((4, 4)), allowed, 3)[0]) == [1, 2, 3]


def test_the_easiest_candidate_has_the_lowest_loss() -> None:
    rng = np.random.default_rng(1)
    features = [rng.normal(size=(size, 4)) + 2 * place for place, size in enumerate((7, 9, 5))]
    candidates = [np.stack([rng.permutation(len(values))[:2] for _ in range(6)]) for values in features]
    best, losses = easiest(features, candidates)
    for number in range(6):
        means = np.stack(
            [values[places[number]].mean(axis=0) for values, places in zip(features, candidates, strict=True)]
        )
        terms = []
        for label, values in enumerate(features):
            logits = -np.square(values[:, None] - means).sum(axis=2)
            shifted = logits - logits.max(axis=1, keepdims=True)
            terms.append(np.log(np.exp(shifted).sum(axis=1)) - shifted[:, label])
        assert losses[number] == pytest.approx(np.concatenate(terms).mean())
    assert best == losses.argmin()
    assert losses[best] <= losses.mean()
