"""Why an interval was not given."""

from __future__ import annotations

import shotproof as sp
from shotproof.stats.export.refusals import interval_sentences


def compared(items: int, query: int = 4) -> sp.Comparison:
    world = sp.ShapesWorld(classes=6, items=items)
    features = sp.encode(world.catalog(), "dial(share=0.5)")
    small, large = (sp.sample(world.catalog(), "random", tasks=10, shot=shot, query=query) for shot in (1, 6))
    results = [sp.evaluate(tasks, features, "ncc") for tasks in (small, large)]
    material = sp.Material(results, [small, large], [world.catalog()], [features], halvings=4)
    return sp.compare(material, intervals=["images", "sampler"], runtime=sp.runtime(workers=1, cache=None))


def test_the_reason_is_told_with_the_tasks_that_it_holds_for() -> None:
    (sentence,) = interval_sentences(compared(items=12))
    assert sentence.startswith(
        "No images interval on random (5-way 6-shot) tasks: halves of the images need 20 of each"
    )
    assert sentence.endswith("the sampler interval stands in its place, and is about these images only.")


def test_nothing_is_told_where_the_interval_is_everywhere() -> None:
    assert interval_sentences(compared(items=20)) == []


def test_where_there_is_none_at_all_each_reason_is_told() -> None:
    told = interval_sentences(compared(items=12, query=6))
    assert ["need 14 of each" in told[0], "need 24 of each" in told[1]] == [True, True]
