from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shotproof.core.records import Source
from shotproof.results.origin import Design, Origin, labels_of
from shotproof.results.results import Results
from tests.drawn_results import draw_results, draw_tasks
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


def test_changed_tasks_are_named_by_their_change_also_if_it_is_the_default(tmp_path: Path) -> None:
    given = ({}, {"side": "both"}, {"change": "noise(severity=1)", "side": "support"})
    variants = [origin(tmp_path, "changed", options) for options in given]
    assert labels_of(variants) == ["blur", "blur on both sides", "noise(severity=1) on the support"]
    assert labels_of(variants[:1]) == ["blur"]


def test_random_tasks_stay_random_but_for_unequal_queries(tmp_path: Path) -> None:
    given = ({}, {"skip_small_classes": True}, {"query_dirichlet": 0.5})
    variants = [origin(tmp_path, "random", options) for options in given]
    assert labels_of(variants) == ["random", "random", "random(query_dirichlet=0.5)"]


def test_detectors_are_named_where_they_differ(tmp_path: Path) -> None:
    variants = [origin(tmp_path, detector=one) for one in ("captions", "photometric")]
    assert labels_of(variants) == ["fewstab [captions]", "fewstab [photometric]"]


def test_every_set_has_its_own_reference_whatever_else_is_there() -> None:
    plain = draw_tasks()
    sets = {
        "random": plain,
        "fewstab": draw_tasks("fewstab"),
        "iid": draw_tasks("iid", match="contexts"),
        "ood": draw_tasks("ood", match="contexts"),
        "hard-ood": draw_tasks("hard-ood", match="contexts"),
        "hardest": draw_tasks("hardest", like=plain),
        "random(query_dirichlet=0.5)": draw_tasks("random(query_dirichlet=0.5)"),
        "meta-dataset": draw_tasks("meta-dataset"),
        "semantic": draw_tasks("semantic"),
        "shift": draw_tasks("shift"),
    }
    sets["placebo of fewstab"] = draw_tasks("placebo", like=sets["fewstab"])
    origins = {label: Origin.of(draw_results(tasks, {"ncc": 0.5})) for label, tasks in sets.items()}
    assert {label: one.reference(origins) for label, one in origins.items()} == {
        **dict.fromkeys(("random", "iid", "meta-dataset", "placebo of fewstab")),
        **dict.fromkeys(("fewstab", "hardest", "random(query_dirichlet=0.5)", "semantic", "shift"), "random"),
        **dict.fromkeys(("ood", "hard-ood"), "iid"),
    }
    assert {label: one.axis for label, one in origins.items()} == {
        **dict.fromkeys(("random", "iid", "meta-dataset", "placebo of fewstab")),
        **{"fewstab": "attributes", "ood": "contexts", "hard-ood": "contexts", "hardest": "difficulty"},
        **{"random(query_dirichlet=0.5)": "queries", "semantic": "classes", "shift": "conditions"},
    }
    placebos = {label: one.placebo(origins) for label, one in origins.items() if one.has_placebo}
    contexts = dict.fromkeys(("iid", "ood", "hard-ood", "shift"))
    assert placebos == {"fewstab": "placebo of fewstab", **contexts}
    assert labels_of(list(origins.values())) == list(sets)


def test_the_set_that_another_is_like_comes_before_random_tasks() -> None:
    variable = draw_tasks("meta-dataset")
    sets = {"random": draw_tasks(), "meta-dataset": variable, "hardest": draw_tasks("hardest", like=variable)}
    origins = {label: Origin.of(draw_results(tasks, {"ncc": 0.5})) for label, tasks in sets.items()}
    assert origins["hardest"].reference(origins) == "meta-dataset"
    del origins["meta-dataset"]
    assert origins["hardest"].reference(origins) == "random"
    del origins["random"]
    assert origins["hardest"].reference(origins) is None


def test_a_sampler_that_is_not_known_here_is_measured_against_random_tasks() -> None:
    sets = {"random": draw_tasks(), "somebody": draw_tasks("somebody")}
    origins = {label: Origin.of(draw_results(tasks, {"ncc": 0.5})) for label, tasks in sets.items()}
    assert (origins["somebody"].axis, origins["somebody"].reference(origins)) == ("difficulty", "random")


def test_encoders_whose_features_were_searched_are_named_in_short(tmp_path: Path) -> None:
    found = origin(tmp_path, "hardest")
    names = ("model:nets/first.model", "model:nets/second.model", "")
    variants = [replace(found, searched=Source(f"digest-of-{name}", name)) for name in names]
    assert labels_of(variants) == ["hardest [first]", "hardest [second]", "hardest [digest-o]"]
    assert labels_of(variants[:1]) == ["hardest"]
