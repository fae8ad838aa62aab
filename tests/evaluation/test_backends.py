from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from shotproof.catalog.catalog import Catalog
from shotproof.core.arrays import IntArray
from shotproof.core.errors import InputError, Mismatch
from shotproof.core.options import option
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.encoder import encode
from shotproof.learners.items import NO_CLASS, ItemsMethod, ItemsTask
from shotproof.results.origin import Origin
from shotproof.results.results import Results
from shotproof.tasks.sampler import sample
from shotproof.worlds.shapes import ShapesWorld

PLAIN = Runtime(cache=None, workers=1, progress=False)


def mean_color(path: object) -> IntArray:
    """The means over 8 x 8 boxes of an image."""
    image = np.asarray(Image.open(str(path)).convert("RGB"), dtype=np.float64)
    side = image.shape[0] // 8
    return image.reshape(8, side, 8, side, 3).mean((1, 3)).transpose(2, 0, 1).ravel()


@dataclass(frozen=True)
class NearestPixels(ItemsMethod):
    about = "the nearest class mean of down-scaled colors"

    silent_every: int = option(0, "every so many queries it has no answer; 0: always one", least=0)

    def predict(self, tasks: Sequence[ItemsTask], runtime: Runtime) -> list[IntArray]:
        return [self._answers(task) for task in tasks]

    def _answers(self, task: ItemsTask) -> IntArray:
        support = np.stack([mean_color(item) for item in task.support])
        means = np.stack([support[np.array(task.labels) == c].mean(0) for c in range(len(task.classes))])
        query = np.stack([mean_color(item) for item in task.query])
        answers = ((query[:, None] - means) ** 2).sum(-1).argmin(1)
        if self.silent_every:
            answers[:: self.silent_every] = NO_CLASS
        return answers


@dataclass(frozen=True)
class Wrong(ItemsMethod):
    about = "answers that are none"
    answers: str = option("few", "what is wrong", choices=("few", "large", "float", "tasks"))

    def predict(self, tasks: Sequence[ItemsTask], runtime: Runtime) -> list[IntArray]:
        given = {"few": np.zeros(1, int), "large": np.full(8, 2), "float": np.zeros(8)}.get(self.answers)
        return [] if given is None else [given for _ in tasks]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return ShapesWorld(classes=4, items=12, size=32).write(tmp_path_factory.mktemp("shapes"))


def test_counts_on_items_are_those_on_the_features_that_they_stand_for(catalog: Catalog, tmp_path: Path) -> None:
    tasks = sample(catalog, "random", way=3, shot=2, query=4, tasks=12)
    on_items = evaluate(tasks, catalog=catalog, methods=NearestPixels(), runtime=PLAIN)
    on_pixels = evaluate(tasks, encode(catalog, "pixels(size=8)", runtime=PLAIN), "ncc", runtime=PLAIN)
    columns = ["task", "slot", "label", "n_query", "n_correct", "missed"]
    assert on_items.table.select(columns).equals(on_pixels.table.select(columns))
    assert 0 < sum(on_items.table.column("n_correct").to_pylist()) < 12 * 12
    on_items.write(tmp_path / "results.parquet")
    record = Results.read(tmp_path / "results.parquet").record
    assert record.source("catalog") == catalog.digest
    assert record.features_digest is None
    assert Origin.of(on_items).encoder == "items"
    assert record.methods[0].unanswered == 0


def test_a_task_brings_its_own_seed_and_the_first_tasks_are_the_same(catalog: Catalog) -> None:
    seen: list[Sequence[ItemsTask]] = []

    class Spy(NearestPixels):
        def predict(self, tasks: Sequence[ItemsTask], runtime: Runtime) -> list[IntArray]:
            seen.append(tasks)
            return super().predict(tasks, runtime)

    tasks = sample(catalog, "random", way=2, shot=1, query=2, tasks=6)
    for given, seed in ((tasks, 0), (tasks.first(3), 0), (tasks, 1)):
        evaluate(given, catalog=catalog, methods=Spy(), seed=seed, runtime=PLAIN)
    assert seen[0][:3] == seen[1]
    assert len({task.seed for task in seen[0]}) == 6
    assert not {task.seed for task in seen[0]} & {task.seed for task in seen[2]}
    first = tasks.table.slice(0, 2).to_pylist()
    assert seen[0][0].classes == tuple(row["label"] for row in first)
    assert [path.relative_to(catalog.root).with_suffix("").as_posix() for path in seen[0][0].support] == [
        item for row in first for item in row["support"]
    ]


def test_queries_without_an_answer_count_as_wrong_and_are_counted(catalog: Catalog) -> None:
    tasks = sample(catalog, "random", way=2, shot=5, query=4, tasks=5)
    whole = evaluate(tasks, catalog=catalog, methods=NearestPixels(), runtime=PLAIN)
    with pytest.warns(RuntimeWarning, match="20 of 40 answers .*wrong"):
        half = evaluate(tasks, catalog=catalog, methods=NearestPixels(silent_every=2), runtime=PLAIN)
    assert half.record.methods[0].unanswered == 20
    for row, other in zip(whole.table.to_pylist(), half.table.to_pylist(), strict=True):
        assert other["missed"] == sorted({*row["missed"], 0, 2})


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ("few", r"task 0: expected 8 labels, found int64 of shape \(1,\)"),
        ("large", "task 0: expected labels from 0 to 1, or -1"),
        ("float", "task 0: expected 8 labels, found float64"),
        ("tasks", "expected answers for 3 tasks, found 0"),
    ],
)
def test_answers_that_are_none_are_refused(catalog: Catalog, answers: str, message: str) -> None:
    tasks = sample(catalog, "random", way=2, shot=1, query=4, tasks=3)
    with pytest.raises(InputError, match=message):
        evaluate(tasks, catalog=catalog, methods=Wrong(answers), runtime=PLAIN)


def test_what_a_method_needs_must_be_given(catalog: Catalog) -> None:
    tasks = sample(catalog, "random", way=2, shot=1, query=4, tasks=3)
    features = encode(catalog, "pixels(size=2)", runtime=PLAIN)
    with pytest.raises(InputError, match=r"'NearestPixels' needs .*: give the catalog"):
        evaluate(tasks, features, NearestPixels(), runtime=PLAIN)
    with pytest.raises(InputError, match="'ncc' needs features"):
        evaluate(tasks, catalog=catalog, methods="ncc", runtime=PLAIN)
    with pytest.raises(InputError, match="'NearestPixels' needs the items and 'ncc' needs features"):
        evaluate(tasks, features, ["ncc", NearestPixels()], catalog=catalog, runtime=PLAIN)
    smaller = Catalog(catalog.table.slice(0, 3), catalog.root)
    with pytest.raises(Mismatch, match="tasks: the catalog lacks"):
        evaluate(tasks, catalog=smaller, methods=NearestPixels(), runtime=PLAIN)
