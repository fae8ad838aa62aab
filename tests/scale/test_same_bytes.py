"""Every command writes and prints the same with one worker, two workers, and three machines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shotproof.catalog.catalog import Catalog
from shotproof.worlds.shapes import ShapesWorld
from shotproof.worlds.sounds import SoundsWorld
from tests.pipeline.shapes_experiment import EXPERIMENT, bytes_of
from tests.scale.conftest import Nodes, shotproof
from tests.small_networks import BACKBONE, SIDE

SHAPE = ("--way", "3", "--shot", "2", "--query", "4")
TASKS = ("--split", "test", *SHAPE, "--tasks", "80")
STAMPS = "out/run.json"  # of a run: where its inputs lie
TRAINING = f"--way 3 --shot 2 --query 3 --epochs 2 --tasks 4 --set size={SIDE} --val-split none".split()


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("worlds")
    shapes = ShapesWorld(classes=8, items=14, size=SIDE, train_classes=4).write(folder / "shapes")
    splits = {f"{row['label']},{row['split']}" for row in shapes.table.select(["label", "split"]).to_pylist()}
    (folder / "splits.csv").write_text("\n".join(["label,split", *sorted(splits)]))
    sounds = SoundsWorld(foregrounds=2, backgrounds=2, items=3)
    sounds.write(folder / "sounds").write(folder / "sounds.parquet")
    pairs = [f"'{one}' = {list(backgrounds)}" for one, backgrounds in sounds.mapping().pairs.items()]
    (folder / "mapping.toml").write_text("\n".join(["[pairs]", *pairs]))
    return folder


def flow(worlds: Path, folder: Path, *runtime: str) -> dict[str, bytes | str]:
    """Run every command that computes, and return the files that it writes and its output."""
    folder.mkdir()
    printed: dict[str, str] = {}

    def call(name: str, *arguments: str | Path, cached: bool = True) -> None:
        cache = ["--cache", "none"] if cached else []
        printed[name] = re.sub(r"[\d.]+ s\b", "", shotproof(*arguments, *cache, *runtime)).replace(str(folder), "")

    files = ("catalog", "attributes", "features", "random", "fewstab", "hardest", "results", "adapted", "ncc")
    made = {name: folder / f"{name}.parquet" for name in files}
    check = ("--splits", worlds / "splits.csv", "--check", *SHAPE)
    call("catalog", "catalog", worlds / "shapes", *check, "-o", made["catalog"])
    call("detect", "detect", made["catalog"], "--detector", "photometric", "-o", made["attributes"])
    call("encode", "encode", made["catalog"], "--encoder", "pixels(size=4)", "-o", made["features"])
    mixed = folder / "mixed"
    mapping = ("--mapping", worlds / "mapping.toml", "--set", "format=wav")
    call("mix", "mix", worlds / "sounds.parquet", *mapping, "-o", mixed)
    for sampler in ("random", "fewstab", "hardest"):
        given = {"fewstab": [made["attributes"]], "hardest": [made["features"]]}
        arguments = [*given.get(sampler, []), "--sampler", sampler, *TASKS, "-o", made[sampler]]
        call(sampler, "sample", made["catalog"], *arguments, cached=False)
    methods = ("--method", "ncc", "--method", "logistic", "--method", "pt-map")
    call("evaluate", "evaluate", made["hardest"], made["features"], *methods, "-o", made["results"])
    models = folder / "model-{seed}.model"
    seeds = ("--seed", "0", "--seed", "1", "--backbone", BACKBONE)
    call("train", "train", made["catalog"], "--objective", "protonet", *seeds, *TRAINING, "-o", models)
    network = (made["catalog"], "--model", folder / "model-1.model", "--method", "finetune(steps=1)")
    call("adapt", "evaluate", made["random"], *network, "-o", made["adapted"])
    call("ncc", "evaluate", made["random"], made["features"], "--method", "ncc", "-o", made["ncc"])
    inputs = (made["random"], made["catalog"], made["features"])
    call("compare", "compare", made["ncc"], *inputs, "--halvings", "10", "--json")
    words = (made["attributes"], made["features"])
    call("explain", "explain", "hardness", made["hardest"], "--against", made["random"], *words, "--json")
    (folder / "experiment.toml").write_text(EXPERIMENT.replace('root = "world"', f"root = '{worlds / 'shapes'}'"))
    call("run", "run", folder / "experiment.toml")
    return {**printed, **bytes_of(folder)}


@pytest.fixture(scope="module")
def alone(worlds: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes | str]:
    return flow(worlds, tmp_path_factory.mktemp("alone") / "made", "--workers", "1")


def differing(found: dict[str, bytes | str], expected: dict[str, bytes | str]) -> list[str]:
    return sorted(name for name in {*found, *expected} - {STAMPS} if found.get(name) != expected.get(name))


def test_two_workers_write_the_same_bytes(worlds: Path, alone: dict[str, bytes | str], tmp_path: Path) -> None:
    assert differing(flow(worlds, tmp_path / "made", "--workers", "2"), alone) == []


def test_three_machines_write_the_same_bytes(
    worlds: Path, alone: dict[str, bytes | str], nodes: Nodes, tmp_path: Path
) -> None:
    assert differing(flow(worlds, tmp_path / "made", "--engine", nodes.engine), alone) == []
    assert len(Catalog.read(tmp_path / "made" / "catalog.parquet")) == 8 * 14
