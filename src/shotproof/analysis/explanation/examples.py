"""Examples of what makes tasks hard: for each leading attribute, the class of a task in which it differs most."""

from __future__ import annotations

from dataclasses import dataclass

from shotproof.analysis.explanation.explain import Explanation
from shotproof.analysis.explanation.mismatch import row_mismatch, sides_of
from shotproof.attributes.attributes import Attributes

EXAMPLES = 4


@dataclass(frozen=True)
class MismatchExample:
    """A class of a task; each item with whether the attribute holds of it."""

    attribute: str
    task: int
    label: str
    support: list[tuple[str, bool]]
    query: list[tuple[str, bool]]


def mismatch_examples(explanation: Explanation, attributes: Attributes, count: int = EXAMPLES) -> list[MismatchExample]:
    """One example for each of the first attributes whose mismatch is above the reference's; no class is shown twice."""
    tasks = explanation.sets[0].tasks
    (sides,), held = sides_of([tasks], attributes)
    words = attributes.to_words()
    examples: list[MismatchExample] = []
    used: set[int] = set()
    for one in explanation.attributes[:count]:
        if explanation.excess(one).mean <= 0 or one.attribute not in held.words:
            continue
        distance = row_mismatch(sides, held, held.words.index(one.attribute))
        row = next(int(row) for row in (-distance).argsort(kind="stable") if int(row) not in used)
        used.add(row)
        record = tasks.table.slice(row, 1).to_pylist()[0]
        support, query = (
            [(item, one.attribute in (words[item] or ())) for item in record[side]] for side in ("support", "query")
        )
        examples.append(MismatchExample(one.attribute, record["task"], record["label"], support, query))
    return examples
