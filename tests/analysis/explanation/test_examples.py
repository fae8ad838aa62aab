from __future__ import annotations

import numpy as np

from shotproof.analysis.explanation.examples import mismatch_examples
from shotproof.analysis.explanation.explain import explain
from tests.hard_tasks import WORLD, random_tasks, with_other_supports


def test_an_example_is_the_class_in_which_its_attribute_differs_most() -> None:
    random = random_tasks(20)
    tasks = with_other_supports(random, "one")
    words = WORLD.attributes().to_words()
    explanation = explain(tasks, WORLD.attributes(), against=[random])
    examples = mismatch_examples(explanation, WORLD.attributes())
    leading = [one.attribute for one in explanation.attributes[:4] if explanation.excess(one).mean > 0]
    assert [one.attribute for one in examples] == leading
    assert len({(one.task, one.label) for one in examples}) == len(examples)
    rows = tasks.table.to_pylist()

    def holding(items: list[str], attribute: str) -> list[bool]:
        return [attribute in (words[item] or ()) for item in items]

    for number, example in enumerate(examples):
        (row,) = [one for one in rows if (one["task"], one["label"]) == (example.task, example.label)]
        assert example.support == list(zip(row["support"], holding(row["support"], example.attribute), strict=True))
        taken = {(one.task, one.label) for one in examples[:number]}
        free = [one for one in rows if (one["task"], one["label"]) not in taken]
        distances = [
            abs(np.mean(holding(one["support"], example.attribute)) - np.mean(holding(one["query"], example.attribute)))
            for one in free
        ]
        own = [np.mean([holds for _, holds in side]) for side in (example.support, example.query)]
        assert abs(own[0] - own[1]) == max(distances)
