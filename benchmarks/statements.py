"""Five worlds on which a headline is easily wrong, and the statements about each.

    python -m benchmarks.statements

1. Ties: there is nothing to rely on, and five heads differ by chance alone.
2. Floor: one classifier has lost all of its small skill, another a little of much more.
3. References: random, iid and hard-ood tasks in one comparison.
4. Placebo: words shuffled within classes, on a world where the interval over tasks excludes zero.
5. Requests: the intervals `images` and `classes`, with one task set that is too small for halves of the images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.verdicts import shuffle_words, words_of
from shotproof.analysis.compare import compare
from shotproof.analysis.inputs import Inputs
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.comparison.comparison import Comparison
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.tasks.sampler import sample
from shotproof.worlds.gaussian import GaussianWorld

HEADS = ("ncc", "cosine", "logistic", "ridge", "knn")
SHUFFLED = 37  # a world whose shuffled words fool the interval over tasks


def ties() -> Comparison:
    """Compare heads on a world whose words move nothing."""
    catalog, features, attributes = GaussianWorld(families=2, pull=0.0).draw(20, 100, seed=1)
    return _compare_world(catalog, [features], attributes, ("random", "fewstab"), HEADS)


def floor() -> Comparison:
    """Compare an encoder that sees words and next to nothing of the classes with a good one."""
    catalog, features, attributes = GaussianWorld(families=2, pull=1.0).draw(20, 100, seed=2)
    words = words_of(attributes)
    names = sorted({word for item_words in words.values() for word in item_words})
    holds = np.array([[word in words[item] for word in names] for item in catalog.items])
    noise = np.random.default_rng(2).normal(size=(len(holds), 8))
    sees_words = np.hstack([0.8 * holds, noise + 0.3 * features.array])
    both = [
        Features.from_array(list(catalog.items), features.array, name="good"),
        Features.from_array(list(catalog.items), sees_words, name="words"),
    ]
    return _compare_world(catalog, both, attributes, ("random", "fewstab"), ("ncc",))


def references() -> Comparison:
    """Compare heads that rely on contexts, with random tasks beside the matched sets."""
    return _in_contexts(items=300, methods=HEADS[:2])


def _in_contexts(items: int, methods: Sequence[str], intervals: Sequence[str] | None = None) -> Comparison:
    catalog, features, attributes = GaussianWorld(families=1, words=6, pull=1.5).draw(20, items, seed=3)
    words = words_of(attributes)
    table = catalog.table.append_column("context", pa.array([words[item][0] for item in catalog.items]))
    with_contexts = Catalog(table, record=catalog.record)
    sets = ("random", "iid", "hard-ood")
    return _compare_world(with_contexts, [features], attributes, sets, methods, intervals, query=10)


def placebo() -> Comparison:
    """Compare on a world whose words are shuffled within classes."""
    catalog, features, attributes = GaussianWorld(families=2, pull=0.6).draw(20, 100, seed=SHUFFLED)
    meaningless = Attributes.from_words(shuffle_words(words_of(attributes), SHUFFLED))
    return _compare_world(catalog, [features], meaningless, ("random", "fewstab"), ("ncc",), seed=SHUFFLED)


def requests() -> Comparison:
    """Compare with too few items per context for halves of them, while random tasks can be drawn on halves."""
    return _in_contexts(items=120, methods=("ncc",), intervals=("images", "classes"))


def _compare_world(
    catalog: Catalog,
    features: Sequence[Features],
    attributes: Attributes,
    samplers: Sequence[str],
    methods: Sequence[str],
    intervals: Sequence[str] | None = None,
    **shape: Any,
) -> Comparison:
    extra_inputs: Mapping[str, Any] = {"fewstab": {"attributes": attributes}}
    sets = [sample(catalog, sampler, split="test", **shape, **extra_inputs.get(sampler, {})) for sampler in samplers]
    results = [evaluate(tasks, feature, methods) for tasks in sets for feature in features]
    return compare(Inputs(results, sets, [catalog], list(features), [attributes]), intervals=intervals)


if __name__ == "__main__":
    for world in (ties, floor, references, placebo, requests):
        print(f"\n{world.__name__}: {world.__doc__}")
        for sentence in world().verdict():
            print(f"  {sentence}")
