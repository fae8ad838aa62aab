"""Pretrained encoders are said to have seen classes of the same names; nothing is refused."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest

from shotproof.analysis.compare import compare
from shotproof.analysis.pretraining import notes_of_pretraining
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import UnknownName
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.store import OnError
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.encoder import Encoder, with_record
from shotproof.features.features import Features
from shotproof.features.transforms import transform
from shotproof.results.results import Results
from shotproof.tasks.sampler import sample
from tests.drawn_results import draw_results, draw_tasks


def seen(results: Results, labels: dict[str, str], pretrained_on: str | None = "imagenet") -> Results:
    """The results of an encoder that was pretrained, on classes of other names."""
    column = [labels.get(one, one) for one in results.table.column("label").to_pylist()]
    table = results.table.set_column(results.table.column_names.index("label"), "label", pa.array(column))
    features = replace(results.record.features, pretrained_on=pretrained_on)
    return Results(table, replace(results.record, features=features))


def drawn(encoder: str = "lite0", data_set: str = "birds") -> Results:
    """Results on ant, bee, cat and dog, of which ImageNet has the first two."""
    return draw_results(draw_tasks(data_set=data_set), {"ncc": 0.5}, encoder)


def test_a_note_says_how_many_names_are_shared() -> None:
    (note,) = notes_of_pretraining([seen(drawn(), {})])
    assert note.startswith("ImageNet, the training data of lite0, has 2 of these 4 class names (ant, bee)")


def test_comparisons_have_the_note() -> None:
    results = [seen(drawn(), {})]
    assert set(notes_of_pretraining(results)) <= set(compare(results).notes)


def test_of_many_names_some_are_shown() -> None:
    (note,) = notes_of_pretraining([seen(drawn(), {"cat": "Persian_cat", "dog": "016.Golden_Retriever"})])
    assert "has 4 of these 4 class names (ant, bee, golden retriever, ...)" in note


def test_there_is_none_without_shared_names_or_if_nothing_is_known_of_the_encoder() -> None:
    new = {"ant": "first", "bee": "second"}
    assert notes_of_pretraining([seen(drawn(), new)]) == []
    assert notes_of_pretraining([seen(drawn(), {}, None), seen(drawn("own"), {}, "a list of later versions")]) == []


def test_encoders_share_a_note_and_data_sets_do_not() -> None:
    both = [seen(drawn(name), {}) for name in ("lite0", "hf:google/vit-base-patch16-224")]
    (note,) = notes_of_pretraining([*both, drawn("pixels")])
    assert "training data of lite0 and hf:google/vit-base-patch16-224, has" in note
    other = seen(drawn(data_set="insects"), {"ant": "zebra"})
    first, second = notes_of_pretraining([*both, other])
    assert "has 2 of 4 class names of birds (ant, bee)" in first
    assert "training data of lite0, has 2 of 4 class names of insects (bee, zebra)" in second


@dataclass(frozen=True)
class Trained(Encoder):
    """Somebody's encoder."""

    about = "drawn numbers"
    name = "trained"
    pretrained_on = "imagenet"

    def encode(self, catalog: Catalog, runtime: Runtime, on_error: OnError) -> Features:
        values = np.random.default_rng(0).normal(size=(len(catalog), 4))
        return Features.from_array(catalog.items, values)


class Misspelled(Trained):
    """One that declares what there is not."""

    pretrained_on = "imagenot"


def catalog_of(labels: list[str], items: int = 4) -> Catalog:
    pairs = [(f"{label}/{number}", label) for label in sorted(labels) for number in range(items)]
    columns = {"item": [item for item, _ in pairs], "path": [item for item, _ in pairs]}
    return Catalog(pa.table({**columns, "label": [label for _, label in pairs], "split": ["test"] * len(pairs)}))


def test_an_encoder_declares_it_and_transforms_and_results_keep_it() -> None:
    catalog = catalog_of(["014.Indigo_Bunting", "047.American_Goldfinch"])
    encoder = Trained()
    features = with_record(encoder.encode(catalog, Runtime(), "raise"), encoder, catalog)
    tasks = sample(catalog, "random", way=2, shot=1, query=1, tasks=2)
    for given in (features, transform(features, "l2")):
        (note,) = notes_of_pretraining([evaluate(tasks, given, "ncc")])
        assert "has 1 of these 2 class names (indigo bunting)" in note


def test_an_encoder_that_declares_an_unknown_list_is_refused() -> None:
    catalog, encoder = catalog_of(["a", "b"]), Misspelled()
    with pytest.raises(UnknownName, match="imagenot"):
        with_record(encoder.encode(catalog, Runtime(), "raise"), encoder, catalog)
