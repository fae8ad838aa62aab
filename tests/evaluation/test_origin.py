from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shotproof.evaluation.origin import Design, Origin, labels_of, reference
from shotproof.evaluation.results import Results
from tests.report_files import make_catalog, make_results, make_tasks


def origin(folder: Path, sampler: str = "fewstab", options: dict[str, Any] | None = None, **made: Any) -> Origin:
    tasks = make_tasks(make_catalog(folder), sampler, options=options, **made)
    return Origin.of(make_results(tasks, "pixels", {"ncc": 0.5}))


def test_an_origin_is_what_the_record_says(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path, name="birds")
    tasks = make_tasks(catalog, shot=2)
    found = Origin.of(make_results(tasks, "pixels", {"ncc": 0.5}))
    assert found.design == Design("birds", catalog.digest, "test", way=3, shot=2, query=4)
    assert found.design.data_set == "birds"
    assert (found.sampler, found.detector, found.tasks_digest) == ("fewstab", "photometric", tasks.digest)
    assert (found.encoder, found.match) == ("pixels", tasks.digest)


def test_without_a_record_the_counts_tell_way_and_query(tmp_path: Path) -> None:
    results = make_results(make_tasks(make_catalog(tmp_path)), "pixels", {"ncc": 0.5})
    found = Origin.of(Results(results.table))
    assert found.design == Design("", None, None, way=3, shot=None, query=4)
    assert (found.sampler, found.tasks_digest, found.encoder) == ("unknown", None, "unknown")


@pytest.mark.parametrize(
    ("way", "shot", "shape"),
    [(5, 1, "5-way 1-shot"), (5, None, "5-way unknown shots"), (None, None, "variable-way variable-shot")],
)
def test_a_design_is_named_by_its_shape(way: int | None, shot: int | None, shape: str) -> None:
    assert Design("", None, None, way, shot, query=None).shape == shape


def test_variants_of_a_sampler_are_told_apart_by_what_differs(tmp_path: Path) -> None:
    variants = [origin(tmp_path, options={"support": one, "max_tries": 9}) for one in ("exclusive", "attribute")]
    assert labels_of(variants) == ["fewstab(support='exclusive')", "fewstab(support='attribute')"]
    assert labels_of(variants[:1]) == ["fewstab"]


def test_random_tasks_stay_random_but_for_unequal_queries(tmp_path: Path) -> None:
    given = ({}, {"skip_small_classes": True}, {"query_dirichlet": 0.5})
    variants = [origin(tmp_path, "random", options) for options in given]
    assert labels_of(variants) == ["random", "random", "random(query_dirichlet=0.5)"]


def test_detectors_are_named_where_they_differ(tmp_path: Path) -> None:
    variants = [origin(tmp_path, detector=one) for one in ("captions", "photometric")]
    assert labels_of(variants) == ["fewstab [captions]", "fewstab [photometric]"]


def test_the_reference_is_random_or_what_the_others_are_matched_with(tmp_path: Path) -> None:
    plain, planted = origin(tmp_path, "random"), origin(tmp_path)
    assert reference({"fewstab": planted, "random": plain}) == "random"
    assert reference({"fewstab": planted, "hardest": origin(tmp_path, "hardest", seed=3)}) is None
    assert reference({"fewstab": planted}) is None
