"""A study in memory, in a folder, and of parts that were made before."""

from __future__ import annotations

from pathlib import Path

import pytest

import shotproof as sp
from shotproof.core.errors import InputError

SHAPE = {"way": 3, "shots": [1], "query": 4, "tasks": 12}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of drawn shapes."""
    folder = tmp_path_factory.mktemp("data") / "shapes"
    sp.ShapesWorld(classes=5, items=20, size=16).write(folder)
    return folder


def evaluated(data: Path, folder: Path | None = None) -> sp.Study:
    return sp.Study(data, encoder="pixels(size=4)", folder=folder).evaluate(["ncc", "knn"], **SHAPE)


def test_a_study_in_memory_makes_the_full_claim_and_nothing_twice(data: Path) -> None:
    study = evaluated(data)
    assert study.compare().covers == ("images", "sampler")
    assert {row.quantity for row in study.compare().to_pandas().itertuples()} >= {"accuracy", "gap", "placebo"}
    assert study.verdict() == study.compare().verdict()
    made = list(study.made)
    study.evaluate(["ncc", "knn"], **SHAPE).compare()
    assert study.made == made
    study.evaluate("ridge", **SHAPE)
    assert all("ridge" in name for name in study.made[len(made) :])
    assert study.compare().methods == ["ncc", "knn", "ridge"]


def test_a_study_in_a_folder_is_found_again_by_the_next_one(data: Path, tmp_path: Path) -> None:
    study = evaluated(data, tmp_path / "out")
    page = study.report()
    assert page == tmp_path / "out" / "report.html"
    again = evaluated(data, tmp_path / "out")
    assert again.compare().to_json() == study.compare().to_json()
    assert again.report() == page
    assert again.made == []
    parts = sp.Study.of(tmp_path / "out")
    assert parts.compare().to_json() == study.compare().to_json()
    assert parts.made == []


def test_parts_are_a_study_whatever_their_order_and_form(data: Path, tmp_path: Path) -> None:
    study = evaluated(data)
    parts = [*study.tasks, study.catalog, *study.features.values(), *study.inputs.attributes, *study.results]
    assert sp.Study.of(parts).compare().to_json() == study.compare().to_json()
    for number, part in enumerate(parts):
        part.write(tmp_path / f"{number}.parquet")
    read = sp.Study.of(sorted(tmp_path.iterdir()))
    assert read.compare().covers == study.compare().covers
    assert read.verdict() == study.verdict()
    assert sp.compare(study) is study.compare()


def test_what_is_no_part_of_a_study_is_refused(data: Path) -> None:
    with pytest.raises(InputError, match=r"expected results, task sets, .* found list"):
        sp.Study.of([[]])  # type: ignore[list-item]
    with pytest.raises(InputError, match="nothing was evaluated yet"):
        sp.Study(data, encoder="pixels").compare()
    with pytest.raises(InputError, match="was read from files: to evaluate more"):
        sp.Study.of(evaluated(data).results).evaluate("ncc")


def test_hard_tasks_are_explained_from_what_the_study_has(data: Path) -> None:
    (explanation,) = evaluated(data).explain()
    assert [explained.name.split("(")[0] for explained in explanation.sets][:2] == ["fewstab", "random"]
    assert explanation.sets[0].hardness
