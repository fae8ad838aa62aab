"""The method `chat`, against a real HTTP server on loopback that looks at the pictures: the truth is known."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, UnreadableItem
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.learners.incontext.chat import Chat, Question
from shotproof.learners.items import ItemsTask
from shotproof.results.results import Results
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet
from shotproof.worlds.sounds import SoundsWorld
from tests.chat_servers import ChatStandIn, chat_server, nearest_answer, seen

KEY = "sk-very-secret"
QUICK: dict[str, Any] = {"model": "tiny", "backoff": 0.001}


@pytest.fixture
def server() -> Iterator[ChatStandIn]:
    with chat_server() as server:
        yield server


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def draw_colors(folder: Path) -> Catalog:
    """Four classes of pictures of one color each, near enough to be mistaken at times."""
    random = np.random.default_rng(0)
    centers = {"dark_red": (120, 30, 30), "brick": (150, 50, 40), "teal": (30, 120, 120), "sea": (40, 150, 140)}
    columns: dict[str, list[str]] = {"item": [], "path": [], "label": []}
    for label, center in centers.items():
        for number in range(8):
            color = tuple(int(value) for value in np.clip(random.normal(center, 15), 0, 255))
            Image.new("RGB", (16, 16), color).save(folder / f"{label}{number}.png")
            for column, value in zip(columns, (f"{label}{number}", f"{label}{number}.png", label), strict=True):
                columns[column].append(value)
    return Catalog(pa.table({**columns, "split": ["test"] * 32}), folder)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return draw_colors(tmp_path)


@pytest.fixture
def tasks(catalog: Catalog) -> TaskSet:
    return sample(catalog, "random", way=3, shot=2, query=2, tasks=5)


def counted(tasks: TaskSet, catalog: Catalog, method: Chat, cache: Path | None = None, seed: int = 0) -> Results:
    runtime = Runtime(cache=cache, workers=1, progress=False)
    return evaluate(tasks, catalog=catalog, methods=method, seed=seed, runtime=runtime)


def nearest_color(tasks: TaskSet, catalog: Catalog) -> Results:
    """What a server that answers by the nearest color must have counted: 1-NN on the colors that it sees."""
    parts = [{"type": "image_url", "image_url": {"url": image_url(path)}} for path in catalog.paths]

    class Nearest:
        def fit(self, rows: Any, labels: Any) -> None:
            self.rows, self.labels = rows, labels

        def predict(self, rows: Any) -> Any:
            return self.labels[((rows[:, None] - self.rows) ** 2).sum(-1).argmin(1)]

    return evaluate(tasks, Features.from_array(catalog.items, [seen(part) for part in parts]), Nearest())


def image_url(path: Path) -> str:
    from shotproof.media.data_urls import image_data_url

    return image_data_url(path, 512)


def same_counts(first: Results, second: Results) -> bool:
    columns = ["task", "slot", "label", "n_query", "n_correct", "missed"]
    return bool(first.table.select(columns).equals(second.table.select(columns)))


@pytest.mark.parametrize("labels", ["names", "anonymous"])
def test_counts_are_those_of_the_model_behind_the_server(
    server: ChatStandIn, catalog: Catalog, tasks: TaskSet, labels: str
) -> None:
    results = counted(tasks, catalog, Chat(url=server.url, labels=labels, **QUICK))  # type: ignore[arg-type]
    expected = nearest_color(tasks, catalog)
    assert same_counts(results, expected)
    assert 0 < sum(expected.table.column("n_correct").to_pylist()) < 30
    assert len(server.bodies) == 30
    texts = {part["text"] for body in server.bodies for part in body["messages"][0]["content"] if "text" in part}
    named = any("teal" in text or "dark red" in text for text in texts)
    assert named == (labels == "names")
    assert ("Class: class A" in texts) == (labels == "anonymous")
    assert all((body["model"], body["temperature"], body["max_tokens"]) == ("tiny", 0, 32) for body in server.bodies)
    assert {headers["path"] for headers in server.headers} == {"/v1/chat/completions"}
    assert results.record.methods[0].unanswered == 0


def test_the_prompt_has_the_support_with_its_classes_then_the_query(catalog: Catalog) -> None:
    support = tuple(catalog.paths[place] for place in (0, 1, 16, 17))
    task = ItemsTask(0, 5, ("dark_red", "teal"), support, (0, 0, 1, 1), (catalog.paths[2],))
    first, *examples, query, end = Chat(model="m", prompt="Which?").parts(task, task.query[0])
    assert first == "Which?\nThe classes: dark red, teal."
    assert (query, end) == (task.query[0], "Class:")
    pairs = dict(zip(examples[::2], examples[1::2], strict=True))
    assert pairs == dict(zip(support, ["Class: dark red"] * 2 + ["Class: teal"] * 2, strict=True))


def test_the_seed_decides_the_order_of_the_support_and_nothing_else(
    server: ChatStandIn, catalog: Catalog, tasks: TaskSet
) -> None:
    method = Chat(url=server.url, concurrency=1, **QUICK)
    asked = []
    for seed in (0, 0, 1):
        counted(tasks, catalog, method, seed=seed)
        asked.append([json.dumps(body["messages"][0]["content"]) for body in server.bodies])
        server.bodies.clear()
    assert asked[0] == asked[1]
    assert asked[0] != asked[2]
    for first, other in zip(asked[0], asked[2], strict=True):
        parts, others = (json.loads(content)[1:-2] for content in (first, other))
        pairs = [sorted(json.dumps(pair) for pair in zip(p[::2], p[1::2], strict=True)) for p in (parts, others)]
        assert pairs[0] == pairs[1]
        assert json.loads(first)[-2:] == json.loads(other)[-2:]
    # The queries of one task share the beginning, which servers may keep.
    assert len({json.dumps(json.loads(content)[:-2]) for content in asked[0]}) == 5


def test_faults_that_pass_are_tried_again(server: ChatStandIn, catalog: Catalog, tasks: TaskSet) -> None:
    server.faults = ["500", "429 0", "503", "raw {not json", 'raw {"choices": []}', "huge", "408"]
    results = counted(tasks, catalog, Chat(url=server.url, retries=7, **QUICK))
    assert same_counts(results, nearest_color(tasks, catalog))
    assert len(server.bodies) == 37


def test_answers_that_name_no_class_count_as_wrong_and_are_recorded(
    server: ChatStandIn, catalog: Catalog, tasks: TaskSet, tmp_path: Path
) -> None:
    answers = iter(["no idea", "", None, "teal or sea or brick or dark red"] + ["nearest"] * 26)

    def answer(content: list[dict[str, Any]]) -> str | None:
        chosen = next(answers)
        return f"I would say: {nearest_answer(content).upper()}!" if chosen == "nearest" else chosen

    server.answer = answer
    with pytest.warns(RuntimeWarning, match="4 of 30 answers .*wrong"):
        results = counted(tasks, catalog, Chat(url=server.url, concurrency=1, **QUICK), tmp_path / "cache")
    assert results.record.methods[0].unanswered == 4
    assert len(server.bodies) == 30  # an empty answer is one, and not asked for again
    expected, found = nearest_color(tasks, catalog).table.to_pylist(), results.table.to_pylist()
    assert [row["missed"] for row in found[2:]] == [row["missed"] for row in expected[2:]]
    assert [row["missed"] for row in found[:2]] == [[0, 1], [0, 1]]
    with pytest.warns(RuntimeWarning, match="4 of 30"):
        again = counted(tasks, catalog, Chat(model="tiny"), tmp_path / "cache")
    assert again.table.equals(results.table)
    assert len(server.bodies) == 30


def test_an_interrupted_evaluation_goes_on_without_asking_again(
    server: ChatStandIn, catalog: Catalog, tasks: TaskSet, tmp_path: Path
) -> None:
    server.answer = lambda content: nearest_answer(content)
    method = Chat(url=server.url, concurrency=1, retries=1, log=tmp_path / "log.jsonl", **QUICK)
    server.faults = [""] * 11 + ["500"] * 2
    with pytest.raises(
        InputError, match=r"task 1 got no answer: the server answered 500 .*: oops \(after 2 \w+\); .*saved"
    ):
        counted(tasks, catalog, method)
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 11
    assert len(server.bodies) == 13
    results = counted(tasks, catalog, method)
    assert len(server.bodies) == 13 + 19
    assert same_counts(results, nearest_color(tasks, catalog))
    # What decides an answer is asked for anew: another prompt, another model, a picture that changed.
    counted(tasks, catalog, Chat(url=server.url, log=tmp_path / "log.jsonl", model="other", backoff=0.001))
    assert len(server.bodies) == 32 + 30
    item = tasks.table.column("query")[0][0].as_py()
    Image.new("RGB", (16, 16), (1, 2, 3)).save(catalog.root / f"{item}.png")
    counted(tasks, catalog, method)
    assert 62 < len(server.bodies) < 92


KILLED = """
import sys
from pathlib import Path
from shotproof import Catalog, Runtime, TaskSet, evaluate

folder = Path(sys.argv[1])
runtime = Runtime(cache=folder / "cache", workers=1, progress=False)
method = f"chat(model='tiny', concurrency=2, url='{sys.argv[2]}')"
evaluate(TaskSet.read(folder / "tasks.parquet"), catalog=Catalog.read(folder / "catalog.parquet"), methods=method,
         runtime=runtime)
"""


def test_a_process_that_is_killed_loses_only_what_was_under_way(
    server: ChatStandIn, catalog: Catalog, tasks: TaskSet, tmp_path: Path
) -> None:
    catalog.write(tmp_path / "catalog.parquet")
    tasks.write(tmp_path / "tasks.parquet")
    reached, go_on = threading.Event(), threading.Event()

    def answer(content: list[dict[str, Any]]) -> str:
        if len(server.bodies) > 12:
            reached.set()
            go_on.wait(30)
        return nearest_answer(content)

    server.answer = answer
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path), server.url], env=dict(os.environ))
    assert reached.wait(60)
    process.send_signal(signal.SIGKILL)
    process.wait()
    go_on.set()
    asked = len(server.bodies)
    results = counted(tasks, catalog, Chat(url=server.url, **QUICK), tmp_path / "cache")
    assert len(server.bodies) - asked <= 30 - 10
    assert same_counts(results, nearest_color(tasks, catalog))


def test_the_estimate_is_told_and_too_many_requests_are_refused(
    server: ChatStandIn, catalog: Catalog, tasks: TaskSet, caplog: pytest.LogCaptureFixture
) -> None:
    estimate = r"30 requests with 210 images or sounds, about 3,\d{3} tokens"
    with pytest.raises(InputError, match=rf"would make {estimate}, more than max_requests=29: raise max_requests, or"):
        counted(tasks, catalog, Chat(url=server.url, max_requests=29, **QUICK))
    with pytest.raises(InputError, match=rf"would make {estimate}, more than max_requests=0"):
        counted(tasks, catalog, Chat(model="tiny", max_requests=0))  # without a server
    assert not server.bodies
    with caplog.at_level(logging.INFO, "shotproof"):
        counted(tasks, catalog, Chat(url=server.url, max_requests=30, **QUICK))
    assert caplog.messages[0].startswith("method 'chat(model='tiny')': 30 requests with 210 images or sounds, about 3,")


@pytest.mark.parametrize(
    ("size", "max_side", "tokens"),
    [
        ((64, 64), 512, 9),
        ((28, 28), 512, 1),
        ((1024, 512), 512, 19 * 10),
        ((512, 512), 512, 361),
        ((1024, 1024), 56, 4),
    ],
)
def test_a_picture_counts_by_the_patches_that_it_covers(
    tmp_path: Path, size: tuple[int, int], max_side: int, tokens: int
) -> None:
    Image.new("RGB", size).save(tmp_path / "x.png")
    method = Chat(model="m", max_side=max_side, max_tokens=1)
    task = ItemsTask(0, 5, ("a", "b"), (), (), (tmp_path / "x.png",))
    texts = sum(len(part) for part in method.parts(task, task.query[0]) if isinstance(part, str)) / 4
    estimate = method.estimate([Question(task, task.query[0], "request", {})])
    assert (estimate.requests, estimate.items, estimate.tokens) == (1, 1, round(1 + texts + tokens))


def test_the_log_has_no_key_and_whole_characters(
    server: ChatStandIn, catalog: Catalog, tasks: TaskSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.answer = lambda content: f"{nearest_answer(content)} \ud800 {KEY}"
    results = counted(tasks, catalog, Chat(url=server.url, log=tmp_path / "log.jsonl", **QUICK))
    assert KEY not in (tmp_path / "log.jsonl").read_text(encoding="utf-8")
    assert same_counts(results, nearest_color(tasks, catalog))


def test_as_many_requests_at_once_as_allowed(server: ChatStandIn, catalog: Catalog, tasks: TaskSet) -> None:
    server.together = threading.Barrier(3)  # nobody is answered before so many ask at once
    counted(tasks, catalog, Chat(url=server.url, concurrency=3, **QUICK))
    assert len(server.bodies) == 30


def test_a_refusal_stops_at_once_without_the_key(
    server: ChatStandIn, catalog: Catalog, tasks: TaskSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.faults = ["", "", f"401 bad key {KEY}"]
    with pytest.raises(InputError, match=r"refuse.*: 401 .*bad key") as refusal:
        counted(tasks, catalog, Chat(url=server.url, concurrency=1, **QUICK), tmp_path / "cache")
    assert KEY not in str(refusal.value)
    assert len(server.bodies) == 3
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    results = counted(tasks, catalog, Chat(url=server.url, **QUICK), tmp_path / "cache")
    assert len(server.bodies) == 31
    meta = json.dumps(results.record.to_meta())
    assert KEY not in meta
    assert "127.0.0.1" not in meta
    assert results.methods == ["chat(model='tiny')"]
    assert not any(KEY.encode() in path.read_bytes() for path in (tmp_path / "cache").rglob("*.*"))


def test_without_an_address_or_with_a_broken_picture(server: ChatStandIn, catalog: Catalog, tasks: TaskSet) -> None:
    with pytest.raises(InputError, match=r"method 'chat' needs url, or .* OPENAI_BASE_URL"):
        counted(tasks, catalog, Chat(model="tiny"))
    item = tasks.table.column("support")[0][0].as_py()
    (catalog.root / f"{item}.png").write_bytes(b"no image")
    with pytest.raises(UnreadableItem, match=f"image .*{item}.png cannot be read"):
        counted(tasks, catalog, Chat(url=server.url, **QUICK))


def test_sounds_are_heard(server: ChatStandIn, tmp_path: Path) -> None:
    catalog = SoundsWorld(foregrounds=3, backgrounds=1, items=4).write(tmp_path)
    foregrounds = Catalog(
        catalog.table.filter(pa.array([label != "" for label in catalog.table.column("label").to_pylist()])),
        catalog.root,
    )
    tasks = sample(foregrounds, "random", split=foregrounds.splits[-1], way=2, shot=1, query=1, tasks=3)
    results = counted(tasks, foregrounds, Chat(url=server.url, seconds=1.0, labels="anonymous", **QUICK))
    kinds = {part["type"] for body in server.bodies for part in body["messages"][0]["content"]}
    assert kinds == {"text", "input_audio"}
    assert sum(results.table.column("n_query").to_pylist()) == 6
    assert results.record.methods[0].unanswered == 0
