from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import safetensors
import torch
from safetensors.torch import save_file

import shotproof as sp
from shotproof.core.errors import InputError
from shotproof.core.plain_values import plain
from shotproof.core.records import Maker, ModelRecord
from shotproof.models.backbone import backbones
from shotproof.models.model import Model
from shotproof.models.objective import objectives
from shotproof.models.preprocessing import ImagePreprocessing
from tests.small_networks import BACKBONE, CLASSES, SIDE, WAY, network_of, spelled


@pytest.fixture
def model() -> Model:
    record = ModelRecord(
        backbone=Maker.of(backbones.make(BACKBONE)),
        objective=Maker.of(objectives.make("baseline")),
        preprocessing=plain(ImagePreprocessing(size=SIDE, stored=SIDE).to_meta()),
        settings={"way": WAY},
        classes=tuple(f"class{number}" for number in range(CLASSES)),
        seed=3,
    )
    return Model.of(network_of(objectives.make("baseline"), seed=5), record)


def test_it_is_read_as_it_was_written_in_the_same_bytes(model: Model, tmp_path: Path) -> None:
    for name in ("a.model", "b.safetensors"):
        model.write(tmp_path / name)
        again = sp.read(tmp_path / name)
        assert isinstance(again, Model)
        assert (again.digest, again.record.to_meta()) == (model.digest, model.record.to_meta())
    assert (tmp_path / "a.model").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    with safetensors.safe_open(tmp_path / "a.model", framework="pt") as file:  # anybody can read it
        meta = json.loads(file.metadata()["shotproof"])
        assert torch.equal(file.get_tensor("head.weight"), model.weights["head.weight"])
    assert (meta["kind"], meta["digest"], meta["seed"]) == ("model", model.digest, 3)


def test_its_digest_is_of_weights_and_what_they_compute(model: Model) -> None:
    other = {**model.weights, "head.bias": model.weights["head.bias"] + 1}
    assert replace(model, weights=other).digest != model.digest
    renamed = replace(model, record=replace(model.record, name="mine", seed=4))
    assert renamed.digest == model.digest
    assert replace(model, record=replace(model.record, objective=Maker("protonet"))).digest != model.digest


def test_what_is_no_whole_model_is_told(model: Model, tmp_path: Path) -> None:
    file = tmp_path / "some.model"
    model.write(file)
    whole = file.read_bytes()
    for length in (0, 4, 100, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"cannot be read: .*truncated"):
            Model.read(file)
    file.write_text("some text, and no model at all")
    with pytest.raises(InputError, match=r"cannot be read: .*truncated"):
        Model.read(file)
    save_file({"weight": torch.zeros(2)}, file)
    with pytest.raises(InputError, match="is not a Shotproof model: its metadata says kind none"):
        Model.read(file)
    save_file({}, file, {"shotproof": json.dumps({"kind": "model", "format": 99})})
    with pytest.raises(InputError, match="has format 99; this version reads 2"):
        Model.read(file)
    with pytest.raises(InputError, match="the model's record names no backbone"):
        Model({}, ModelRecord()).network()


def test_weights_of_another_network_are_told_by_name(model: Model) -> None:
    other = replace(model.record, backbone=Maker("resnet10", "resnet10(stem='small')"))
    with pytest.raises(InputError, match=r"it lacks \d+ weights, e\.g\. backbone\."):
        replace(model, record=other).network()
    fewer = {name: each for name, each in model.weights.items() if name != "head.bias"}
    with pytest.raises(InputError, match=r"it lacks 1 weight, e\.g\. head\.bias"):
        replace(model, weights=fewer).network()
    with pytest.raises(InputError, match=r"it has 1 unexpected weight, e\.g\. head\.scale"):
        replace(model, weights={**model.weights, "head.scale": torch.zeros(())}).network()
    narrow = {**model.weights, "head.weight": torch.zeros(CLASSES, 7)}
    with pytest.raises(InputError, match=r"weight head\.weight has the shape \[6, 7\], expected \[6, 64\]"):
        replace(model, weights=narrow).network()


def test_a_write_that_fails_leaves_the_file_before(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "some.model"
    model.write(file)
    before = file.read_bytes()

    def fails(*given: object) -> None:
        Path(str(given[1])).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shotproof.models.model.save_file", fails)
    with pytest.raises(sp.ShotproofError, match=r"cannot write .*some\.model: No space left"):
        model.write(file)
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["some.model"]


def test_a_pretrained_backbone_is_a_model_by_its_name_and_an_untrained_one_is_not(tmp_path: Path) -> None:
    spelling = spelled("hf")
    model = Model.load(spelling)
    assert model.name == spelling
    assert not model.record.seen
    model.write(tmp_path / "vit.model")
    assert Model.load(tmp_path / "vit.model").digest == model.digest
    with pytest.raises(InputError, match="backbone 'resnet12' has no pretrained weights"):
        Model.load("resnet12")
    with pytest.raises(InputError, match="model resnet99 does not exist"):
        Model.load("resnet99")
