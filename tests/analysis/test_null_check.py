"""Pages of shuffled words, on features that lean on the words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shotproof.analysis.compare import compare
from shotproof.analysis.inputs import Inputs
from shotproof.analysis.null_check import NullCheck, check_null
from shotproof.analysis.reevaluation.shuffled_words import evaluate_shuffled
from shotproof.comparison.verdicts import verdicts
from shotproof.core.errors import InputError
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.encoder import encode
from shotproof.results.evaluated import Classifier
from shotproof.stats.shuffles import ShuffledTasks
from shotproof.tasks.sampler import sample
from shotproof.worlds.dial import DialEncoder
from shotproof.worlds.shapes import ShapesWorld


@pytest.fixture(scope="module")
def inputs() -> Inputs:
    world = ShapesWorld(classes=12, items=60)
    catalog, attributes = world.catalog(), world.attributes()
    features = encode(catalog, DialEncoder(0.6))
    sets = [
        sample(catalog, "random", tasks=150, query=10),
        sample(catalog, "fewstab", attributes=attributes, tasks=150, query=10),
    ]
    results = [evaluate(tasks, features, ["ncc", "cosine"]) for tasks in sets]
    return Inputs(results, sets, [catalog], [features], [attributes], halvings=4)


def test_words_that_are_leaned_on_are_found_and_shuffled_ones_are_not(inputs: Inputs) -> None:
    comparison = compare(inputs, intervals="sampler")
    (verdict,) = verdicts(comparison)
    assert len(verdict.losing) == 2
    assert verdict.loss.is_shuffled
    costs = comparison.to_pandas("costs")
    assert set(costs["method"]) == {"ncc", "cosine"}
    assert set(costs["conclusive"]) <= {0, 1}
    assert (costs.loc[costs["conclusive"] == 1, "low"] > 0).all()
    checked = check_null(inputs, 40)
    assert checked.pages == 40
    assert checked.is_sound
    assert len(checked.claims) <= 6  # 2 are expected at most; the chance of more than 6 is 0.003


def test_shuffles_are_the_same_for_a_seed_and_others_for_another(inputs: Inputs) -> None:
    tasks, features = inputs.tasks[1], inputs.features[0]

    def shuffled(seed: int) -> ShuffledTasks:
        of = [("dial", features, ["ncc"])]
        return evaluate_shuffled([tasks], inputs.catalogs[0], of, shuffles=30, tasks=20, seed=seed)

    first, again, other = (shuffled(seed) for seed in (3, 3, 4))
    for mean, values in first.by_task.items():
        assert values.shape == (30, 20)
        assert np.array_equal(values, again.by_task[mean])
        assert not np.array_equal(values, other.by_task[mean])
    (by_row,) = first.by_row.values()
    means = by_row.reshape(30, 20, -1).mean(axis=2)
    assert np.allclose(means, first.by_task[tasks.digest, Classifier("dial", "ncc"), "acc"])


def test_too_many_claims_are_unsound() -> None:
    assert NullCheck(20, (("ncc loses",),) * 3).is_sound
    assert not NullCheck(20, (("ncc loses",),) * 6).is_sound


def test_what_cannot_be_shuffled_is_refused(inputs: Inputs) -> None:
    with pytest.raises(InputError, match=r"no words to shuffle: .*attributes or contexts"):
        check_null(replace(inputs, results=inputs.results[:1], tasks=inputs.tasks[:1]))
    with pytest.raises(InputError, match=r"words cannot be shuffled: .*features.* not given"):
        check_null(replace(inputs, features=[]))
    with pytest.raises(InputError, match="pages: expected a whole number from 1"):
        check_null(inputs, 0)
