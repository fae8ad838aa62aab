from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pytest

from shotproof.attributes.detector import Detector, Words, detect, detectors
from shotproof.attributes.detectors.table import TableDetector
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, UnknownName
from shotproof.core.options import option
from shotproof.core.records import AttributesRecord, Maker, Source
from shotproof.core.runtime.runtime import Runtime


@dataclass(frozen=True)
class LettersDetector(Detector):
    """The letters of an item's name among some; nothing is known of names that start with `?`."""

    about = "letters of the name"

    among: str = option("abc", "letters to look for")

    def detect(self, catalog: Catalog, runtime: Runtime) -> Words:
        return {
            item: None if item.startswith("?") else [letter for letter in item if letter in self.among]
            for item in catalog.table["item"].to_pylist()
        }


@dataclass(frozen=True)
class DotDetector(Detector):
    """`dot` for names with a dot, and nothing for those without."""

    about = "dots of the name"

    def detect(self, catalog: Catalog, runtime: Runtime) -> Words:
        return {item: ["dot"] if "." in item else None for item in catalog.table["item"].to_pylist()}


@pytest.fixture
def letters() -> Iterator[None]:
    detectors.register("letters", LettersDetector)
    yield
    detectors.unregister("letters")


@pytest.fixture
def catalog() -> Catalog:
    items = ["cab", "xyz", "?a.b", "?c"]
    return Catalog(pa.table({"item": items, "path": items, "label": ["l"] * 4, "split": ["s"] * 4}))


@pytest.mark.usefixtures("letters")
def test_a_registered_detector_is_found_by_its_name_and_recorded_with_its_options(catalog: Catalog) -> None:
    found = detect(catalog, "letters(among='ax')")
    assert found.to_words() == {"cab": ["a"], "xyz": ["x"], "?a.b": None, "?c": None}
    assert found.record == AttributesRecord(
        sources={"catalog": Source(catalog.digest)},
        detectors=(Maker("letters", "letters(among='ax')", {"among": "ax"}),),
    )
    assert detect(catalog, {"name": "letters", "among": "ax"}).record == found.record


def test_several_detectors_give_the_union_and_null_only_where_all_give_null(catalog: Catalog) -> None:
    found = detect(catalog, LettersDetector("ab"), DotDetector(), LettersDetector("bz"))
    assert found.to_words() == {"cab": ["a", "b"], "xyz": ["z"], "?a.b": ["dot"], "?c": None}
    assert [detector.options.get("among") for detector in found.record.detectors] == ["ab", None, "bz"]


@pytest.mark.usefixtures("letters")
def test_an_object_is_recorded_under_the_name_of_its_class_in_the_registry(catalog: Catalog) -> None:
    items = catalog.table.append_column("wet", pa.array([True, False, False, False]))
    found = detect(Catalog(items), LettersDetector("ab"), TableDetector(), DotDetector())
    assert [detector.name for detector in found.record.detectors] == ["letters", "table", "DotDetector"]


@pytest.mark.usefixtures("letters")
def test_an_option_that_is_not_there_is_told_with_the_nearest(catalog: Catalog) -> None:
    with pytest.raises(InputError, match="detector 'letters' has no option 'amung': did you mean 'among'"):
        detect(catalog, "letters(amung='a')")


def test_an_option_that_a_detector_needs_is_asked_for(catalog: Catalog) -> None:
    with pytest.raises(InputError, match=r"detector 'captions' needs file: e\.g\. captions\(file='captions\.csv'\)"):
        detect(catalog, "captions")


def test_unknown_names_are_told_with_the_nearest(catalog: Catalog) -> None:
    with pytest.raises(UnknownName, match="unknown detector 'fotometric': did you mean 'photometric'"):
        detect(catalog, "fotometric")
    with pytest.raises(InputError, match="choose at least one detector: captions, endpoint, photometric, table, vlm"):
        detect(catalog)


def test_a_detector_must_answer_for_exactly_the_items_of_the_catalog(catalog: Catalog) -> None:
    class Forgetful(LettersDetector):
        def detect(self, catalog: Catalog, runtime: Runtime) -> Words:
            return {"cab": ["a"]}

    class Talkative(LettersDetector):
        def detect(self, catalog: Catalog, runtime: Runtime) -> Words:
            return super().detect(catalog, runtime) | {"stranger": []}

    with pytest.raises(InputError, match=r"detector 'Forgetful' .* lacks 'xyz'"):
        detect(catalog, Forgetful())
    with pytest.raises(InputError, match=r"has items .*catalog lacks"):
        detect(catalog, Talkative())
