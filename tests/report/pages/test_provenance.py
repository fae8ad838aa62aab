from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from shotproof.analysis.inputs import Inputs
from shotproof.attributes.attributes import Attributes
from shotproof.core.records import AttributesRecord, Maker, MethodRecord
from shotproof.features.features import Features
from shotproof.report.pages.provenance import notes_of, provenance
from shotproof.results.results import Results
from tests.report_files import make_catalog, make_results, make_tasks


def test_all_records_are_listed(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path, name="pets")
    tasks = make_tasks(catalog, seed=7, options={"support": "exclusive"})
    results = make_results(tasks, "pixels", {"ncc": 0.5})
    words = Attributes.from_words({"ant/0": ["red"]}, AttributesRecord(detectors=(Maker("photometric"),)))
    features = Features.from_array(["ant/0"], [[1.0]], name="mine")
    inputs = Inputs([results], [tasks], [catalog], [features], [words])
    of_results, of_tasks, of_catalog, of_features, of_words = provenance(inputs)
    assert of_results[0] == "Results: pets, pixels, fewstab, 3-way 1-shot"
    expected = {
        ("digest", results.digest),
        ("methods.1.spelling", "ncc"),
        ("sources.tasks.digest", tasks.digest),
        ("tasks.seed", "7"),
        ("tasks.sampler.options.support", "exclusive"),
        ("tasks.sources.catalog.digest", catalog.digest),
        ("sources.features.digest", "features-of-pixels"),
    }
    assert expected <= set(of_results[1])
    assert of_tasks[0] == "Tasks: fewstab(support='exclusive'), 20 tasks"
    assert of_catalog == ("Catalog: pets, 32 items", [("digest", catalog.digest), ("name", "pets")])
    assert (of_features[0], of_features[1][0]) == ("Features: mine", ("digest", features.digest))
    assert (of_words[0], of_words[1][0]) == ("Attributes: photometric", ("digest", words.digest))


def test_notes_tell_what_happened(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    tasks = make_tasks(catalog)
    results = make_results(tasks, "pixels", {"ncc": 0.5})
    summary = {"fallback_share": 1 / 3, "tries_max": 12, "classes_left_out": []}
    record = replace(
        results.record, tasks=replace(tasks.record, summary=summary), methods=(MethodRecord("ncc", warnings=4),)
    )
    (tmp_path / "other").mkdir()
    other = make_catalog(tmp_path / "other", ("ant", "bee", "cow"))
    name = f"fewstab tasks {tasks.digest[:8]}"
    noted = Results(results.table, record)
    notes = notes_of(Inputs([noted, noted], [tasks], [other]))
    assert notes[:2] == [f"{name}: fallback share 0.3333, tries max 12.", f"ncc on pixels, {name}: 4 warnings."]
    assert catalog.digest in notes[2]
    assert other.digest in notes[2]
    assert notes_of(Inputs([results], [tasks], [catalog])) == []
    assert notes_of(Inputs([Results(results.table)]))[0].startswith("Some results do not name")
