"""Runs with methods that see the items themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.steps.steps import file_name
from shotproof.pipeline.study import run
from tests.chat_servers import chat_server
from tests.experiment_files import up_to_results
from tests.pipeline.shapes_experiment import EXPERIMENT, TASKS


def test_methods_on_items_are_evaluated_once_beside_those_on_features(experiment: Path) -> None:
    with chat_server() as server:
        method = f"chat(model='tiny', url='{server.url}', max_requests=200)"
        text = EXPERIMENT.replace('"knn"', f'"{method}"').replace("tasks = 12", "tasks = 3")
        experiment.write_text(text.replace("shots = [1, 2]", "shots = [1]"))
        first = run(experiment)
        asked = len(server.bodies)
        second = run(experiment)
    of_one_shot = [name for name in TASKS if "1shot" in name]
    assert asked == len(of_one_shot) * 3 * 3 * 4
    assert len(server.bodies) == asked
    assert not up_to_results(second.made)
    name = file_name("chat(model='tiny')")
    assert {f"results/{tasks}/items/{name}.parquet" for tasks in of_one_shot} <= set(up_to_results(first.made))
    shown = set(first.compare().to_pandas()["classifier"])
    assert shown == {"pixels(size=4): ncc", "items: chat(model='tiny')"}
    assert "chat(model=" in first.page.read_text()


def test_the_log_of_a_method_on_items_lies_beside_the_experiment(
    experiment: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    with chat_server() as server:
        method = f"chat(model='tiny', url='{server.url}', log='logs/answers.jsonl')"
        text = EXPERIMENT.replace('"ncc", "knn"', f'"{method}"').replace(
            "tasks = 12", 'tasks = 2\nsamplers = ["random"]'
        )
        experiment.write_text(text)
        run(experiment)
    kept = (experiment.parent / "logs" / "answers.jsonl").read_text().splitlines()
    assert len(kept) == len(server.bodies) > 0
    assert not list(elsewhere.iterdir())
    chosen = Experiment.read(experiment).methods[0]
    assert chosen.spelling == "chat(model='tiny')"
    experiment.write_text(text.replace("logs/answers.jsonl", str(elsewhere / "other.jsonl")))
    assert vars(Experiment.read(experiment).methods[0])["log"] == elsewhere / "other.jsonl"


def test_without_methods_on_features_nothing_is_encoded(experiment: Path) -> None:
    text = EXPERIMENT.replace(
        'methods = ["ncc", "knn"]', """methods = ["chat(model='tiny', url='http://localhost')"]"""
    )
    experiment.write_text(text.replace("[features]\n", "").replace('encoders = ["pixels(size=4)"]\n', ""))
    assert not any(name.startswith("features") for name in run(experiment, dry_run=True).made)
