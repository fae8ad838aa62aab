from __future__ import annotations

from pathlib import Path

from shotproof.evaluation.results import Results
from shotproof.report.provenance import notes_of, provenance
from tests.report_files import make_catalog, make_results, make_tasks


def test_all_metadata_is_listed(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    tasks = make_tasks(catalog, seed=7, options={"support": "exclusive"})
    results = make_results(tasks, "pixels", {"ncc": 0.5})
    of_results, of_tasks, of_catalog = provenance([results], [tasks], catalog)
    assert of_results[0] == "Results: pixels, fewstab, 3-way 1-shot"
    expected = {
        ("digest", results.digest),
        ("made_by.methods.1.name", "ncc"),
        ("tasks.digest", tasks.digest),
        ("tasks.seed", "7"),
        ("tasks.made_by.support", "exclusive"),
        ("tasks.from.catalog", catalog.digest),
        ("features.digest", "features-of-pixels"),
    }
    assert expected <= set(of_results[1])
    assert of_tasks[0] == "Tasks: fewstab, 20 tasks"
    assert of_catalog == ("Catalog: 32 items", [("digest", catalog.digest)])


def test_notes_tell_what_happened(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    tasks = make_tasks(catalog)
    results = make_results(tasks, "pixels", {"ncc": 0.5})
    summary = {"fallback_share": 1 / 3, "tries_max": 12, "classes_left_out": []}
    meta = {
        **results.meta,
        "tasks": {**results.meta["tasks"], "summary": summary},
        "made_by": {"methods": [{"name": "ncc", "warnings": 4}]},
    }
    (tmp_path / "other").mkdir()
    other = make_catalog(tmp_path / "other", ("ant", "bee", "cow"))
    name = f"fewstab tasks {tasks.digest[:8]}"
    notes = notes_of([Results(results.table, meta), Results(results.table, meta)], [tasks], other)
    assert notes[:2] == [f"{name}: fallback share 0.3333, tries max 12.", f"ncc on pixels, {name}: 4 warnings."]
    assert catalog.digest in notes[2]
    assert other.digest in notes[2]
    assert notes_of([results], [tasks], catalog) == []
    assert notes_of([Results(results.table)], [], None)[0].startswith("Some results do not name their task set")
