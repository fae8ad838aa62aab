from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from PIL import Image

from shotproof.catalog.catalog import Catalog
from shotproof.errors import InputError
from shotproof.evaluation.results import Results
from shotproof.report.album import thumbnail
from shotproof.report.answers import answers_on
from shotproof.report.gallery import AnsweredTasks, choose_tasks, make_gallery
from tests.report_files import make_catalog, make_results, make_tasks


def answered(catalog: Catalog, shot: int = 1, tasks: int = 25) -> tuple[AnsweredTasks, Results]:
    made = make_tasks(catalog, shot=shot, tasks=tasks, seed=shot)
    results = make_results(made, "pixels", {"ncc": 0.7, "ridge": 0.5})
    return AnsweredTasks(f"set {shot}", made, answers_on(made, [results])), results


def decode(uri: str) -> Image.Image:
    head, _, body = uri.partition(",")
    assert head == "data:image/jpeg;base64"
    return Image.open(io.BytesIO(base64.b64decode(body)))


def test_tasks_are_spaced_from_hardest_to_easiest(tmp_path: Path) -> None:
    given, results = answered(make_catalog(tmp_path))
    shares: dict[int, list[float]] = {}
    for row in results.table.to_pylist():
        shares.setdefault(row["task"], []).append(row["n_correct"] / row["n_query"])
    order = sorted(shares, key=lambda task: (round(float(np.mean(shares[task])), 9), task))
    assert choose_tasks(given, 5) == [(rank + 1, order[rank]) for rank in (0, 6, 12, 18, 24)]
    assert choose_tasks(given, 1) == [(13, order[12])]
    assert len(choose_tasks(given, 99)) == 25


def test_the_gallery_shows_what_is_in_the_files(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    given, results = answered(catalog)
    gallery = make_gallery([given], catalog, max_tasks=4)
    assert gallery.classifiers == [("pixels", "ncc"), ("pixels", "ridge")]
    table = given.tasks.table
    for shown in gallery.tasks:
        rows = table.filter(pc.equal(table.column("task"), shown.number)).to_pylist()
        assert [(c.label, c.attribute) for c in shown.classes] == [(r["label"], r["attribute"]) for r in rows]
        assert [[one.item for one in c.support + c.query] for c in shown.classes] == [
            r["support"] + r["query"] for r in rows
        ]
        ridge = [r for r in results.table.to_pylist() if r["method"] == "ridge" and r["task"] == shown.number]
        outcome = shown.outcomes[1]
        assert outcome is not None
        assert outcome.correct == [r["n_correct"] for r in ridge]
        assert outcome.missed == [r["missed"] for r in ridge]


def test_each_image_is_embedded_once_and_is_its_own(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    sets = [answered(catalog, shot)[0] for shot in (1, 2)]
    gallery = make_gallery(sets, catalog)
    assert [task.set_name for task in gallery.tasks] == ["set 1"] * 3 + ["set 2"] * 3
    thumbs = {one for task in gallery.tasks for c in task.classes for one in c.support + c.query}
    assert len({one.item for one in thumbs}) == len(thumbs) == len(gallery.album.images)
    paths = dict(zip(catalog.items.to_pylist(), catalog.paths, strict=True))
    for one in thumbs:
        assert one.image is not None
        image, original = decode(gallery.album.images[one.image]), Image.open(paths[one.item])
        assert image.size == (96, 48)
        assert np.abs(np.asarray(image)[20, 40].astype(int) - np.asarray(original)[25, 50]).max() <= 4


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    (tmp_path / "0-0.png").write_text("not an image")
    (tmp_path / "1-3.png").unlink()
    given, _ = answered(catalog)
    gallery = make_gallery([given], catalog, max_tasks=25)
    assert sorted(gallery.album.unreadable) == ["ant/0", "bee/3"]
    broken = {one.item for t in gallery.tasks for c in t.classes for one in c.support + c.query if one.image is None}
    assert broken == {"ant/0", "bee/3"}


def test_small_images_are_not_enlarged(tmp_path: Path) -> None:
    Image.new("RGB", (20, 10)).save(tmp_path / "a.png")
    assert decode(thumbnail(tmp_path / "a.png")).size == (20, 10)


def test_a_task_set_without_a_classifier_says_so(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    first, _ = answered(catalog)
    made = make_tasks(catalog, shot=2)
    second = AnsweredTasks("second", made, answers_on(made, [make_results(made, "other", {"ncc": 0.5})]))
    gallery = make_gallery([first, second], catalog, max_tasks=2)
    assert [[outcome is not None for outcome in task.outcomes] for task in gallery.tasks] == [
        [True, True, False],
        [False, False, True],
    ]


def test_items_that_the_catalog_lacks_are_an_error(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    given, _ = answered(catalog)
    others = catalog.table.set_column(0, "item", pa.array([f"x{i}" for i in range(len(catalog))]))
    with pytest.raises(InputError, match="not in the catalog"):
        make_gallery([given], Catalog(others, tmp_path))
