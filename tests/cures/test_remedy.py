"""The contract of every remedy: treatments are the same twice, and fitted only on the classes to fit on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest

import shotproof as sp
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, UnknownName
from shotproof.cures.class_parts import CHOOSE, CONFIRM, FIT
from shotproof.cures.remedy import DEFAULT_REMEDIES, Remedy, RemedyData, Treatment, has_items, remedies, select_items
from shotproof.features.features import Features
from tests.cures.remedy_data import remedy_data
from tests.hash_seeds import run_with_another_hash_seed

# Remedies of features that are at hand; those that train features need a model.
NAMES = [name for name in remedies if remedies.get(name).family != "training"]
EVERY = sorted({*DEFAULT_REMEDIES, *(remedies.get(name).example or name for name in NAMES)})
# What each remedy that needs more than features asks for.
NEEDS = {
    "center-contexts": "column with the context",
    "copies(copies=2)": "evaluate a changed set",
    "encoder": "encoders",
    "leace(by='contexts')": "column with the context",
    "leace(by='words')": "shotproof detect",
    "nap(by='changes')": "study.change",
    "nap(by='contexts')": "column with the context",
    "nap(by='words')": "shotproof detect",
    "supports(choose='spread')": "no contexts and no attributes",
}
NEEDS["copies"] = NEEDS["copies(copies=2)"]
every_remedy = pytest.mark.parametrize("spelling", EVERY)


def treated_digests(treatments: Sequence[Treatment], features: Features) -> list[tuple[str, ...]]:
    """What each treatment makes of features, and all else that it is."""
    return [
        (
            treatment.name,
            sp.transform(treatment.features or features, treatment.steps).digest,
            str(treatment.method),
            str(treatment.sampler),
            *treatment.apply,
        )
        for treatment in treatments
    ]


def every_digest() -> dict[str, list[tuple[str, ...]]]:
    data = remedy_data()
    return {spelling: treated_digests(remedies.make(spelling).treatments(data), data.features) for spelling in EVERY}


def test_the_default_remedies_leave_none_out_that_is_quick() -> None:
    assert {remedies.make(spelling).name for spelling in DEFAULT_REMEDIES} == set(NAMES)


@every_remedy
def test_it_proposes_treatments_with_names_and_a_way_to_apply_each(spelling: str) -> None:
    treatments = remedies.make(spelling).treatments(remedy_data())
    names = [treatment.name for treatment in treatments]
    assert names
    assert len(set(names)) == len(names)
    assert all(treatment.apply for treatment in treatments)


def test_treatments_are_the_same_twice_and_in_any_order_of_sets() -> None:
    digests = every_digest()
    assert every_digest() == digests
    program = "from tests.cures.test_remedy import every_digest\nprint(every_digest())"
    assert run_with_another_hash_seed(program).strip() == str(digests)


def shuffled_outside(data: RemedyData) -> RemedyData:
    """The data with other features, words and labels of all items but those to fit on."""
    random = np.random.default_rng(5)
    catalog = data.catalog
    others = [item for part in (CHOOSE, CONFIRM) for item in catalog.in_split(part).items]
    is_other = np.isin(catalog.items, others)

    def noisy(features: Features) -> Features:
        items = features.table.column("item").to_pylist()
        values = features.array.copy()
        outside = np.isin(items, others)
        values[outside] = random.normal(size=(np.count_nonzero(outside), values.shape[1]))
        return Features.from_array(items, values, name=features.name)

    table = catalog.table
    labels = np.array(table.column("label").to_pylist(), object)
    labels[is_other] = random.permutation(labels[is_other])
    table = table.set_column(table.column_names.index("label"), "label", pa.array(labels, pa.string()))
    assert data.attributes is not None
    assert data.changed is not None
    words = {item: list(held or ()) for item, held in data.attributes.to_words().items()}
    words |= {item: [f"word{random.integers(3)}"] for item in others}
    return replace(
        data,
        catalog=Catalog(table, catalog.root, catalog.record),
        features=noisy(data.features),
        attributes=Attributes.from_words(words),
        changed=noisy(data.changed),
    )


@every_remedy
def test_it_is_fitted_on_the_classes_to_fit_on_alone(spelling: str) -> None:
    data, remedy = remedy_data(), remedies.make(spelling)
    before, after = (
        [(treatment.name, sp.transform(data.features, treatment.steps).array) for treatment in treatments]
        for treatments in (remedy.treatments(data), remedy.treatments(shuffled_outside(data)))
    )
    assert [name for name, _ in after] == [name for name, _ in before]
    for (_, values), (_, same_values) in zip(before, after, strict=True):
        np.testing.assert_array_equal(values, same_values)


@every_remedy
def test_it_asks_for_what_would_allow_it(spelling: str) -> None:
    data = remedy_data()
    bare = RemedyData(data.catalog, data.features, data.method)
    remedy = remedies.make(spelling)
    if spelling not in NEEDS:
        assert remedy.treatments(bare)
        return
    with pytest.raises(InputError) as refused:
        remedy.treatments(bare)
    assert NEEDS[spelling] in str(refused.value)


@pytest.mark.parametrize(
    ("spelling", "hint"),
    [
        ("napp(by='words')", "'nap'"),
        ("nap(by='word')", "'words'"),
        ("nap(directons=(3,), by='words')", "'directions'"),
        ("wccn(ridges=(0,))", "above 0"),
        ("copies(copies=0)", "from 1 to 20"),
        ("supports", "choose"),
    ],
)
def test_a_misspelled_remedy_is_refused_with_what_was_expected(spelling: str, hint: str) -> None:
    with pytest.raises(InputError) as refused:
        remedies.make(spelling)
    assert hint in str(refused.value)


def test_a_remedy_can_be_registered() -> None:
    @dataclass(frozen=True)
    class Halved(Remedy):
        about = "half of each feature"
        family = "features"

        def treatments(self, data: RemedyData) -> list[Treatment]:
            return [Treatment("halved", steps=("power(power=0.5)",))]

    remedies.register("halved", Halved)
    try:
        assert sp.remedies.make("halved") == Halved()
    finally:
        remedies.unregister("halved")
    with pytest.raises(UnknownName):
        remedies.make("halved")


def test_the_base_has_the_items_to_fit_on_with_earlier_steps() -> None:
    data = remedy_data()
    items = data.catalog.in_split(FIT).items
    base = data.base(("l2",))
    assert base.table.column("item").to_pylist() == items
    rows = data.features.rows_of(data.base_catalog.item_column)
    values = data.features.array[rows].astype(np.float64)
    np.testing.assert_allclose(base.array, values / np.linalg.norm(values, axis=1, keepdims=True), rtol=1e-6)
    assert list(map(str, base.record.transforms)) == ["l2"]


def test_items_are_selected_in_the_order_asked_for() -> None:
    features = Features.from_array(["a", "b", "c"], np.eye(3))
    chosen = select_items(features, pa.array(["c", "a"]))
    assert chosen.table.column("item").to_pylist() == ["c", "a"]
    assert chosen.array.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert chosen.digest != features.digest
    assert has_items(features, pa.array(["c", "a"]))
    assert not has_items(features, pa.array(["c", "d"]))
