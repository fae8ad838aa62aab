"""Changed tasks on a page: the items as they were shown, beside the same queries unchanged, with both answers."""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from shotproof.analysis.explored_tasks import choose_tasks
from shotproof.catalog.catalog import CHANGE
from shotproof.pipeline.report import GALLERY_CHANGES, write_compared
from shotproof.report.pages.album import Album
from shotproof.report.pages.changed_thumbnails import with_shown_changes
from shotproof.report.pages.content import GalleryTask
from shotproof.report.pages.gallery import Gallery, make_gallery
from shotproof.results.answers import answers_on
from tests.changed_run import ChangedRun, make_changed_run
from tests.drawn_layers import COLORS


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ChangedRun:
    return make_changed_run(tmp_path_factory.mktemp("changed"))


def gallery_of(run: ChangedRun, change: str, album: Album, with_unchanged: bool = True) -> Gallery:
    answered = answers_on(run.of(change), run.results)
    before = answers_on(run.tasks[0], run.results) if with_unchanged else None
    return make_gallery([GalleryTask("set", task, run.catalog, before) for task in choose_tasks(answered, 2)], album)


def pixels(album: Album, number: int | None) -> npt.NDArray[np.int64]:
    assert number is not None
    content = base64.b64decode(album.images[number].partition(",")[2])
    return np.asarray(Image.open(io.BytesIO(content))).astype(np.int64)


def test_a_changed_query_stands_beside_itself_unchanged(run: ChangedRun) -> None:
    album, corners = Album(), []
    for task in gallery_of(run, "mixed-rival", album).tasks:
        assert task.change == "mixed-rival"
        labels = [shown.name for shown in task.classes]
        for shown in task.classes:
            assert shown.unchanged is not None
            for before, after in zip(shown.unchanged, shown.query, strict=True):
                assert after.item.startswith(f"{before.item} @ mixed-rival(")
                one, other = (pixels(album, each.image) for each in (before, after))
                middle = np.asarray(COLORS[int(shown.name.removeprefix("class"))])
                height, width = one.shape[0] // 2, one.shape[1] // 2
                assert abs(one[height, width] - middle).max() < 60  # the foreground stays
                assert abs(other[height, width] - middle).max() < 60
                corners.append(abs(one[2, 2] - other[2, 2]).max())
                ground = str(after.context).removeprefix("on ")
                assert ground in labels
                assert ground != shown.name
                assert after.about == f"{shown.name} on the background of {ground}"
                assert before.context is None
    assert np.mean(np.array(corners) > 20) > 0.5  # some items have the background of the other class


def test_both_answers_are_those_of_the_results(run: ChangedRun) -> None:
    gallery = gallery_of(run, "mixed-rival", Album())
    after, before = run.results[3].table.to_pylist(), run.results[0].table.to_pylist()
    for task in gallery.tasks:
        assert task.unchanged is not None
        for place, (_, method) in enumerate(gallery.classifiers):
            for shown, rows in ((task.answers[place], after), (task.unchanged[place], before)):
                assert shown is not None
                own = [row for row in rows if (row["method"], row["task"]) == (method, task.number)]
                assert shown.correct == [row["n_correct"] for row in own]
                assert shown.missed == [row["missed"] for row in own]
                names = [row["label"] for row in own]
                assert shown.called == [[names[slot] for slot in row["answered"]] for row in own]
                for slot, row in enumerate(own):
                    called = [shown.called_at(slot, position) for position in range(row["n_query"])]
                    assert [position for position, name in enumerate(called) if name] == row["missed"]
                    assert row["label"] not in called


def test_without_results_on_the_unchanged_tasks_only_the_items_are_shown(run: ChangedRun) -> None:
    gallery = gallery_of(run, "blur", Album(), with_unchanged=False)
    assert gallery.tasks[0].unchanged is None
    assert gallery.tasks[0].classes[0].unchanged
    assert gallery.marks()[0][0] is not None
    assert gallery.marks()[0][0]["unchanged"] is None  # type: ignore[index]


def test_a_small_catalog_has_the_plates_and_nothing_else(run: ChangedRun) -> None:
    item, plate, other = run.catalog.items[:3]
    small = with_shown_changes(run.catalog, [(item, f"mixed-same(plate={plate!r})"), (item, "")])
    assert set(small.items) == {item, plate, f"{item} @ mixed-same(plate={plate!r})"}
    assert other not in small.items
    assert small.table.column(CHANGE).null_count == 2


def test_the_page_shows_the_main_changes_with_words_for_readers_of_the_screen(run: ChangedRun, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    write_compared(page, run.comparison, run.inputs, projection="none")
    content = page.read_text(encoding="utf-8")
    tasks = re.findall(r'<summary><strong>Task \d+</strong> <span class="aside">(.*?),', content)
    assert tasks[0] == "mixed-rival"  # the background first
    assert len(set(tasks)) == GALLERY_CHANGES
    assert 'alt="unchanged query 1: ' in content
    assert re.search(r'alt="mixed-rival, query 1: class\d on the background of class\d"', content)
    assert content.count("data-unchanged>") == content.count("data-query>") > 0
    marks = json.loads(content.split('id="gallery-marks">')[1].split("</script>")[0])
    assert marks[0][0]["unchanged"]["correct"]
    assert '<table class="compact changes"' in content
    assert content.count('<th scope="row">blur</th>') == 2  # one row for each severity
    pairs = content.split('<section id="methods"')[1].split("</section>")[0]
    shown, folded = pairs.split("<summary>The same on changed tasks</summary>")  # many sets, with a table of their own
    folded, after = folded.split("</details>")
    assert "random, 3-way 2-shot" in shown
    assert "mixed-rival, 3-way 2-shot" in folded
    assert not any("mixed-rival" in part or "blur" in part for part in (shown, after))
