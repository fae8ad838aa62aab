from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from shotproof.catalog.catalog import Catalog
from shotproof.pipeline.explorer import read_site
from shotproof.report.explorer import explorer_site
from shotproof.report.explorer.explorer_site import TYPES, Site
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet
from tests.explored_run import write_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def site(folder: Path) -> Site:
    return read_site(folder)


def loaded(site: Site, path: str) -> Any:
    content = site.content(path)
    assert content is not None, path
    return json.loads(content)


def column(site: Site, place: int, name: str) -> np.ndarray:
    content = site.content(f"data/{place}/{name}.bin")
    assert content is not None
    kind = loaded(site, "data/index.json")["sets"][place]["columns"][name]
    return np.frombuffer(content, {"Uint8Array": "<u1", "Uint16Array": "<u2", "Uint32Array": "<u4"}[kind])


def test_the_index_names_sets_classifiers_and_classes(site: Site) -> None:
    index = loaded(site, "data/index.json")
    assert [one["name"] for one in index["sets"]][:2] == [
        "random, 3-way 1-shot",
        "fewstab, 3-way 1-shot",
    ]
    assert [one["key"] for one in index["sets"]] == ["0", "1", "2", "3"]
    about = index["sets"][1]
    assert about["tasks"] == 30
    assert about["labels"] == ["ant", "bee", "cat", "dog"]
    assert about["contexts"] == ["rain", "sun"]
    names = {one["name"] for one in about["classifiers"]}
    assert names == {f"{method} on {encoder}" for method in ("ncc", "ridge") for encoder in ("pixels", "other encoder")}


def test_columns_hold_the_tasks_and_the_counts(site: Site, folder: Path) -> None:
    tasks = TaskSet.read(folder / "tasks-1.parquet")
    about = loaded(site, "data/index.json")["sets"][1]
    labels = [about["labels"][code - 1] for code in column(site, 1, "label")]
    assert labels == tasks.table.column("label").to_pylist()
    planted = [about["planted"][code - 1] for code in column(site, 1, "planted")]
    assert planted == tasks.table.column("attribute").to_pylist()
    assert column(site, 1, "starts").tolist() == tasks.starts.tolist()
    results = next(
        given
        for given in (Results.read(file) for file in sorted(folder.glob("results-*.parquet")))
        if given.record.tasks_digest == tasks.digest
    )
    assert about["classifiers"][0]["name"] == f"{results.methods[0]} on pixels"
    assert column(site, 1, "correct-0").tolist() == results.counts(results.methods[0]).n_correct.tolist()
    assert not column(site, 0, "planted").any()  # random tasks: 0 stands for none


def test_parts_hold_every_task_with_its_items_and_answers(
    folder: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explorer_site, "PART_TASKS", 8)
    rows = TaskSet.read(folder / "tasks-1.parquet").table.to_pylist()
    parts = [loaded(site, f"data/1/tasks-{part}.json") for part in range(4)]
    assert [len(part["tasks"]) for part in parts] == [8, 8, 8, 6]
    assert site.content("data/1/tasks-4.json") is None
    shown = [
        [[part["items"][str(item)][0] for item in given[side]] for side in ("support", "query")]
        for part in parts
        for task in part["tasks"]
        for given in task["classes"]
    ]
    assert shown == [[row["support"], row["query"]] for row in rows]
    results = Results.read(folder / "results-2.parquet").table.to_pylist()
    missed = [one for part in parts for task in part["tasks"] for one in task["answers"][0]["missed"]]
    assert missed == [row["missed"] for row in results if row["method"] == "ncc"]
    catalog = Catalog.read(folder / "catalog.parquet")
    contexts = dict(zip(catalog.items, catalog.table.column("context").to_pylist(), strict=True))
    for item, row, context in parts[0]["items"].values():
        assert catalog.items[row] == item
        assert contexts[item] == context


def test_pictures_are_decoded_and_encoded_anew(site: Site, folder: Path) -> None:
    small, large = (Image.open(io.BytesIO(site.content(f"items/0/9{size}.jpg") or b"")) for size in ("", "-large"))
    assert (small.size, large.size) == ((96, 48), (120, 60))
    assert (small.format, large.format) == ("JPEG", "JPEG")


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../secret.txt",
        "catalog.parquet",
        "0-0.png",
        "static/index.html",
        "data/",
        "data/9/label.bin",
        "data/0/answers.bin",
        "data/0/correct-99.bin",
        "data/9/tasks-0.json",
        "data/0/tasks-99.json",
        "data/0/confusion-9.json",
        "items/0/999.jpg",
        "items/1/0.jpg",
        "items/0/0.mp3",
        "items/0/-1.jpg",
        "items/0/0.png",
        "items/0/../0.jpg",
        "items/0/\u0661.jpg",
        f"items/0/{'9' * 5000}.jpg",
    ],
)
def test_there_are_no_other_files(site: Site, path: str) -> None:
    assert site.content(path) is None


def test_all_paths_have_content_of_a_known_type(site: Site) -> None:
    for path in site.paths():
        assert site.content(path) is not None
        assert Path(path).suffix in TYPES


def test_a_catalog_that_names_other_files_gives_none_of_their_bytes_away(tmp_path: Path) -> None:
    write_run(tmp_path)
    (tmp_path / "0-0.png").write_text("password")
    (tmp_path / "0-1.png").unlink()
    (tmp_path / "0-1.png").symlink_to("/etc/passwd")
    site = read_site(tmp_path)
    assert site.content("items/0/0.jpg") is None
    assert site.content("items/0/1.jpg") is None
    assert site.content("items/0/1-large.jpg") is None
    assert site.content("items/0/2.jpg") is not None
