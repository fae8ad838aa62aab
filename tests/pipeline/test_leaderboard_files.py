from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pytest

import shotproof as sp
from shotproof.core.errors import InputError, Mismatch
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet
from tests.drawn_cards import make_card, random_axis, stress_axis
from tests.drawn_results import draw_results, draw_tasks


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two methods on random and FewSTAB's tasks, each method and set in a file of its own."""
    for tasks in (draw_tasks("random"), draw_tasks("fewstab", detector="words")):
        for method, accuracy in (("ncc", 0.5), ("knn", 0.9)):
            results = draw_results(tasks, {method: accuracy})
            results.write(tmp_path / "in" / method / f"{tasks.record.sampler}.parquet")
    return tmp_path / "in"


def test_submitting_is_adding_a_file(folder: Path, tmp_path: Path) -> None:
    first = sp.leaderboard(folder, tmp_path / "site")
    assert [entry.classifier.method for entry in first.entries] == ["knn", "ncc"]
    assert first.entries[0].files == ("knn/fewstab.parquet", "knn/random.parquet")
    before = files_of(tmp_path / "site")
    draw_results(draw_tasks("random"), {"ridge": 0.7}).write(folder / "ridge.parquet")
    second = sp.leaderboard(folder, tmp_path / "site")
    assert [entry.classifier.method for entry in second.entries] == ["knn", "ncc", "ridge"]
    assert set(before) < set(files_of(tmp_path / "site"))
    (folder / "ridge.parquet").unlink()
    sp.leaderboard(folder, tmp_path / "site")
    assert files_of(tmp_path / "site") == before  # also the page of what was taken away is gone


def test_sets_that_are_the_same_tasks_are_one_axis(tmp_path: Path) -> None:
    inside = draw_tasks("iid", tasks=20)
    outside, hard = draw_tasks("ood", like=inside), draw_tasks("hard-ood", like=inside)
    for tasks in (inside, outside, TaskSet(outside.table, hard.record)):
        results = draw_results(tasks, {"ncc": 0.5, "knn": 0.9})
        results.write(tmp_path / f"{tasks.record.sampler}.parquet")
    draw_results(TaskSet(outside.table, hard.record), {"ridge": 0.7}).write(tmp_path / "late.parquet")
    board = sp.leaderboard(tmp_path)
    assert [axis.name for axis in board.axes] == ["iid", "hard-ood"]
    assert [entry.classifier.method for entry in board.entries] == ["knn", "ncc", "ridge"]
    assert {str(rank) for rank in board.columns[2].ranks} == {"1 of 3", "2 of 3", "3 of 3"}


def test_a_card_with_one_axis_for_each_name_of_the_same_tasks_is_taken_by_the_first(tmp_path: Path) -> None:
    axis = stress_axis("hard-ood")
    make_card(random_axis(), replace(axis, name="ood"), axis).write(tmp_path / "card.json")
    assert [axis.name for axis in sp.leaderboard(tmp_path).axes] == ["random-5-shot", "ood"]


def test_the_site_may_lie_in_the_folder_itself(folder: Path) -> None:
    sp.leaderboard(folder, folder / "site")
    before = files_of(folder / "site")
    sp.leaderboard(folder, folder / "site")
    assert files_of(folder / "site") == before


def test_what_is_refused_is_named_and_leaves_the_site_as_it_was(folder: Path, tmp_path: Path) -> None:
    sp.leaderboard(folder, tmp_path / "site")
    before = files_of(tmp_path / "site")
    other = draw_tasks("random", seed=1)
    draw_results(other, {"mine": 0.99}).write(folder / "mine.parquet")
    with pytest.raises(Mismatch, match=rf"mine\.parquet: .*is on other random-1-shot tasks of birds, {other.digest}"):
        sp.leaderboard(folder, tmp_path / "site")
    (folder / "mine.parquet").write_bytes(b"no")
    with pytest.raises(InputError, match=r"mine\.parquet"):
        sp.leaderboard(folder, tmp_path / "site")
    (folder / "mine.parquet").unlink()
    (folder / "notes.json").write_text("{}")
    with pytest.raises(InputError, match=r"notes\.json: expected a robustness card"):
        sp.leaderboard(folder, tmp_path / "site")
    assert files_of(tmp_path / "site") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "site"]


def test_a_task_file_in_the_folder_decides(folder: Path, tmp_path: Path) -> None:
    draw_tasks("random", seed=5).write(folder / "tasks" / "random.parquet")
    with pytest.raises(Mismatch, match="than the folder's task files"):
        sp.leaderboard(folder, tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_results_that_claim_tasks_that_they_are_not_on_are_refused(folder: Path) -> None:
    tasks = draw_tasks("random")
    whole = draw_results(tasks, {"mine": 0.9})
    labels = pc.replace_substring(whole.table.column("label"), "ant", "wren")
    lying = whole.table.set_column(whole.table.column_names.index("label"), "label", labels)
    Results(lying, whole.record).write(folder / "mine.parquet")
    with pytest.raises(
        Mismatch, match=rf"mine\.parquet: method 'mine' claims the task set {tasks.digest}, but has other"
    ):
        sp.leaderboard(folder)
    # With its task file there, whoever lies is told, also if he comes first.
    (folder / "mine.parquet").rename(folder / "a.parquet")
    tasks.write(folder / "tasks" / "random.parquet")
    draw_tasks("fewstab", detector="words").write(folder / "tasks" / "fewstab.parquet")
    with pytest.raises(Mismatch, match=r"a\.parquet: .* than the task file"):
        sp.leaderboard(folder)


def test_cards_alone_are_ranked_by_images(tmp_path: Path) -> None:
    for method in ("cosine", "knn"):
        replace(make_card(), method=method).write(tmp_path / method / "card.json")
    assert sp.leaderboard(tmp_path).interval_name == "images"
    assert sp.leaderboard(tmp_path, interval="sampler").interval_name == "sampler"


def test_a_folder_of_other_files_is_not_replaced(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("all of it")
    with pytest.raises(InputError, match=r"mine .*other files"):
        sp.leaderboard(folder, tmp_path / "mine")
    assert files_of(tmp_path / "mine") == {"thesis.tex": b"all of it"}


def test_what_is_no_folder_of_classifiers_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        sp.leaderboard(tmp_path / "nowhere")
    with pytest.raises(InputError, match="no classifier"):
        sp.leaderboard(tmp_path)
