from __future__ import annotations

from pathlib import Path

from shotproof.evaluation.results import Results
from shotproof.evaluation.sources import Design, sources_of
from tests.report_files import make_catalog, make_results, make_tasks


def test_sources_are_what_the_metadata_says(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    tasks = make_tasks(catalog, shot=2)
    (source,) = sources_of([make_results(tasks, "pixels", {"ncc": 0.5})])
    assert source.design == Design(catalog.digest, "test", way=3, shot=2, query=4)
    assert (source.sampler, source.tasks_digest, source.encoder) == ("fewstab", tasks.digest, "pixels")


def test_without_metadata_the_counts_tell_way_and_query(tmp_path: Path) -> None:
    results = make_results(make_tasks(make_catalog(tmp_path)), "pixels", {"ncc": 0.5})
    (source,) = sources_of([Results(results.table)])
    assert source.design == Design(None, None, way=3, shot=None, query=4)
    assert (source.sampler, source.tasks_digest, source.encoder) == ("unknown", None, "unknown")


def test_variants_of_a_sampler_are_told_apart_by_what_differs(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    results = [
        make_results(make_tasks(catalog, seed=i, options={"support": s, "max_tries": 9}), "pixels", {"ncc": 0.6})
        for i, s in enumerate(("exclusive", "attribute"))
    ]
    names = [source.sampler for source in sources_of(results)]
    assert names == ["fewstab (support=exclusive)", "fewstab (support=attribute)"]
    assert sources_of(results[:1])[0].sampler == "fewstab"


def test_random_tasks_stay_random_whatever_their_options(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    results = [
        make_results(make_tasks(catalog, "random", options=options), "pixels", {"ncc": 0.6})
        for options in ({}, {"skip_small_classes": True})
    ]
    assert [source.sampler for source in sources_of(results)] == ["random", "random"]
