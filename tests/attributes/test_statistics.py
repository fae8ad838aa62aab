from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shotproof.attributes.attributes import Attributes
from shotproof.attributes.statistics import DetectionAccuracy, attribute_statistics, detection_accuracy
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, Mismatch, UnknownName

WORDS = st.none() | st.sets(st.sampled_from("abcdef"))
ROW = st.tuples(st.sampled_from(["owl", "tit", "jay"]), st.sampled_from(["train", "test"]), WORDS)


def data_of(rows: list[tuple[str, str, set[str] | None]]) -> tuple[Catalog, Attributes]:
    items = [f"item{number}" for number in range(len(rows))]
    columns = {
        "item": items,
        "path": items,
        "label": [label for label, _, _ in rows],
        "split": [split for _, split, _ in rows],
    }
    words = {item: words for item, (_, _, words) in zip(items, rows, strict=True)}
    return Catalog(pa.table(columns)), Attributes.from_words(words)


@given(st.lists(ROW, min_size=1), st.sampled_from([None, "train", "test"]))
def test_the_statistics_are_those_of_a_plain_count(rows, split) -> None:
    catalog, attributes = data_of(rows)
    kept = [(label, words) for label, of, words in rows if split in (None, of)]
    if not kept:
        with pytest.raises(UnknownName):
            attribute_statistics(attributes, catalog, split)
        return
    found = attribute_statistics(attributes, catalog, split)

    classes = {label: set() for label, _ in kept}
    for label, words in kept:
        classes[label] |= words or set()
    known = [words for _, words in kept if words is not None]
    assert found.items == len(kept)
    assert found.unknown == len(kept) - len(known)
    assert found.classes == len(classes)
    assert found.distinct == len(set().union(*classes.values()))
    assert found.per_class == pytest.approx(sum(map(len, classes.values())) / len(classes))
    assert found.per_item == pytest.approx(sum(map(len, known)) / max(len(known), 1))

    counts = {word: sum(word in words for words in known) for word in set().union(*classes.values())}
    table = found.words.to_pydict()
    assert table["attribute"] == sorted(counts, key=lambda word: (-counts[word], word))
    assert table["items"] == [counts[word] for word in table["attribute"]]
    assert table["classes"] == [sum(word in label for label in classes.values()) for word in table["attribute"]]
    assert table["share"] == pytest.approx([counts[word] / len(kept) for word in table["attribute"]])


def test_attributes_of_other_items_are_refused() -> None:
    catalog, _ = data_of([("owl", "test", None)])
    with pytest.raises(Mismatch, match="lack 1 of the 1 items"):
        attribute_statistics(Attributes.from_words({"other": ["a"]}), catalog)


def test_detection_accuracy_by_hand() -> None:
    query = Attributes.from_words({"1": "ab", "2": "a", "3": "abc", "4": "", "5": "a", "6": None, "7": "a"})
    reference = Attributes.from_words({"1": "abcd", "2": "a", "3": "", "4": "ab", "5": None, "6": "a", "8": "a"})
    # 1: two of four, 2: one of one, 4: none of two; 3 has no reference; 5, 6, 7 and 8 are known to one side only.
    assert detection_accuracy(query, reference) == DetectionAccuracy(50.0, items=3, undefined=1, unpaired=4)


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1))
def test_detection_accuracy_is_the_mean_share_of_the_reference(pairs) -> None:
    query = Attributes.from_words({str(number): ours for number, (ours, _) in enumerate(pairs)})
    reference = Attributes.from_words({str(number): theirs for number, (_, theirs) in enumerate(pairs)})
    shares = [len(ours & theirs) / len(theirs) for ours, theirs in pairs if ours is not None and theirs]
    if not shares:
        with pytest.raises(InputError, match="no item to compare"):
            detection_accuracy(query, reference)
        return
    found = detection_accuracy(query, reference)
    assert found.accuracy == pytest.approx(100 * sum(shares) / len(shares))
    assert (found.items, found.items + found.undefined + found.unpaired) == (len(shares), len(pairs))


def test_detection_accuracy_can_be_of_some_items() -> None:
    found, truth = Attributes.from_words({"a": ["x"], "b": ["y"]}), Attributes.from_words({"a": ["x"], "b": ["x"]})
    assert detection_accuracy(found, truth).accuracy == 50
    assert detection_accuracy(found, truth, ["a"]).accuracy == 100


def test_a_detector_agrees_with_itself() -> None:
    attributes = Attributes.from_words({"1": "ab", "2": "c"})
    assert detection_accuracy(attributes, attributes).accuracy == 100
