from __future__ import annotations

import pytest

import shotproof as sp
from shotproof.analysis.inputs import Inputs
from shotproof.core.errors import Mismatch


def test_transforms_of_searched_and_of_evaluated_features_are_applied_again() -> None:
    catalog = sp.worlds.ShapesWorld(classes=6, items=10).catalog()
    plain, other = (sp.encode(catalog, f"dial(share={share})") for share in (0.2, 0.8))
    used = sp.transform(plain, ["power", "l2"])
    tasks = sp.sample(catalog, "filter(candidates=2)", features=used, tasks=3, query=2)
    source = tasks.record.sources["features"]
    assert source.transforms == ("power", "l2")
    inputs = Inputs([sp.evaluate(tasks, used, "ncc")], features=[other, plain])
    assert [features.name for features in inputs.with_transforms(source)] == [other.name, plain.name, used.name]
    assert inputs.features_of(used.name, used.digest).digest == used.digest
    with pytest.raises(Mismatch, match="are on features"):
        Inputs(inputs.results, features=[other]).features_of(used.name, used.digest)
