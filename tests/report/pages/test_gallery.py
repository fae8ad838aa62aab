from __future__ import annotations

import base64
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from PIL import Image

from shotproof.analysis.explored_tasks import choose_tasks
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.class_files import apply_names
from shotproof.core.errors import InputError
from shotproof.report.pages.album import Album, thumbnail
from shotproof.report.pages.content import GalleryTask
from shotproof.report.pages.gallery import make_gallery
from shotproof.results.answers import AnsweredTasks, answers_on
from shotproof.results.results import Results
from tests.report_files import make_catalog, make_results, make_tasks


def answered(catalog: Catalog, shot: int = 1, tasks: int = 25) -> tuple[AnsweredTasks, Results]:
    made = make_tasks(catalog, shot=shot, tasks=tasks, seed=shot)
    results = make_results(made, "pixels", {"ncc": 0.7, "ridge": 0.5})
    return answers_on(made, [results]), results


def chosen(given: AnsweredTasks, catalog: Catalog, count: int, name: str = "set") -> list[GalleryTask]:
    return [GalleryTask(name, choose_task, catalog) for choose_task in choose_tasks(given, count)]


def decode(uri: str) -> Image.Image:
    head, _, body = uri.partition(",")
    assert head == "data:image/jpeg;base64"
    return Image.open(io.BytesIO(base64.b64decode(body)))


def test_the_gallery_shows_what_is_in_the_files(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    given, results = answered(catalog)
    gallery = make_gallery(chosen(given, catalog, 4), Album())
    assert gallery.classifiers == [("pixels", "ncc"), ("pixels", "ridge")]
    table = given.tasks.table
    for shown in gallery.tasks:
        rows = table.filter(pc.equal(table.column("task"), shown.number)).to_pylist()
        assert [(c.name, c.attribute) for c in shown.classes] == [(r["label"], r["attribute"]) for r in rows]
        assert [[one.item for one in c.support + c.query] for c in shown.classes] == [
            r["support"] + r["query"] for r in rows
        ]
        ridge = [r for r in results.table.to_pylist() if r["method"] == "ridge" and r["task"] == shown.number]
        answers = shown.answers[1]
        assert answers is not None
        assert answers.correct == [r["n_correct"] for r in ridge]
        assert answers.missed == [r["missed"] for r in ridge]


def test_classes_have_their_names_and_items_the_context_that_the_sampler_goes_by(tmp_path: Path) -> None:
    plain = make_catalog(tmp_path)
    weather = ["sun" if number % 2 else "rain" for number in range(len(plain))]
    table = plain.table.append_column("weather", pa.array(weather)).append_column(
        "context", pa.array(["x"] * len(plain))
    )
    catalog = Catalog(table, plain.root, plain.record)
    names = tmp_path / "names.csv"
    names.write_text("label,name\nant,Ants\nbee,Bees\n")
    catalog = apply_names(catalog, names)
    made = make_tasks(catalog, "ood", options={"context_column": "weather"})
    results = make_results(made, "pixels", {"ncc": 0.7})
    album = Album()
    gallery = make_gallery(chosen(answers_on(made, [results]), catalog, 4), album)
    assert {c.name for task in gallery.tasks for c in task.classes} == {"Ants", "Bees", "cat", "dog"}
    assert {c.attribute_kind for task in gallery.tasks for c in task.classes} == {"weather"}
    expected = dict(zip(catalog.items, weather, strict=True))
    shown = [one for task in gallery.tasks for c in task.classes for one in c.support + c.query]
    assert all(one.context == expected[one.item] for one in shown)
    ant = next(one for one in shown if one.item.startswith("ant/"))
    assert ant.about == f"Ants in {ant.context}"
    # The same images under another column are not embedded again.
    images = len(album.images)
    assert {thumbnail.context for thumbnail in album.thumbnails([thumbnail.item for thumbnail in shown], catalog)} == {
        "x"
    }
    assert len(album.images) == images


def test_without_a_column_of_contexts_there_is_no_caption(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    assert {thumbnail.context for thumbnail in Album().thumbnails(catalog.items[:3], catalog)} == {None}


def test_each_image_is_embedded_once_and_is_its_own(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    album = Album()
    tasks = [one for shot in (1, 2) for one in chosen(answered(catalog, shot)[0], catalog, 3, f"set {shot}")]
    gallery = make_gallery(tasks, album)
    assert [task.set_name for task in gallery.tasks] == ["set 1"] * 3 + ["set 2"] * 3
    thumbs = {one for task in gallery.tasks for c in task.classes for one in c.support + c.query}
    assert len({thumb.item for thumb in thumbs}) == len(thumbs) == len(album.images)
    paths = dict(zip(catalog.items, catalog.paths, strict=True))
    for one in thumbs:
        assert one.image is not None
        image, original = decode(album.images[one.image]), Image.open(paths[one.item])
        assert image.size == (96, 48)
        assert np.abs(np.asarray(image)[20, 40].astype(int) - np.asarray(original)[25, 50]).max() <= 4


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    (tmp_path / "0-0.png").write_text("not an image")
    (tmp_path / "1-3.png").unlink()
    given, _ = answered(catalog)
    album = Album()
    gallery = make_gallery(chosen(given, catalog, 25), album)
    assert sorted(album.unreadable) == ["ant/0", "bee/3"]
    broken = {one.item for t in gallery.tasks for c in t.classes for one in c.support + c.query if one.image is None}
    assert broken == {"ant/0", "bee/3"}


def test_small_images_are_not_enlarged(tmp_path: Path) -> None:
    Image.new("RGB", (20, 10)).save(tmp_path / "a.png")
    assert Image.open(io.BytesIO(thumbnail(tmp_path / "a.png"))).size == (20, 10)


def test_a_task_set_without_a_classifier_says_so(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    first, _ = answered(catalog)
    made = make_tasks(catalog, shot=2)
    second = answers_on(made, [make_results(made, "other", {"ncc": 0.5})])
    gallery = make_gallery([*chosen(first, catalog, 1), *chosen(second, catalog, 1)], Album())
    assert [[answers is not None for answers in task.answers] for task in gallery.tasks] == [
        [True, True, False],
        [False, False, True],
    ]


def test_items_that_the_catalog_lacks_are_an_error(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    given, _ = answered(catalog)
    others = catalog.table.set_column(0, "item", pa.array([f"x{i}" for i in range(len(catalog))]))
    with pytest.raises(InputError, match="the catalog lacks"):
        make_gallery(chosen(given, Catalog(others, tmp_path), 1), Album())


def test_of_a_task_with_very_many_items_the_first_classes_are_shown(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    given, _ = answered(catalog)
    (task,) = chosen(given, catalog, 1)
    few = make_gallery([task], Album()).tasks[0]
    assert few.classes_left_out == 0
    rows = given.tasks.table.slice(task.chosen.rows[0], len(few.classes)).to_pylist()
    many = [{**row, "query": row["query"] * 60} for row in rows]
    table = pa.Table.from_pylist(many, given.tasks.table.schema)
    large = replace(task.chosen, answered=replace(given, tasks=replace(given.tasks, table=table)), position=0)
    shown = make_gallery([GalleryTask("set", large, catalog)], Album()).tasks[0]
    assert len(shown.classes) + shown.classes_left_out == len(few.classes)
    assert 2 <= len(shown.classes) < len(few.classes)
    assert shown.answers[0] is not None
    assert len(shown.answers[0].correct) == len(shown.classes)
