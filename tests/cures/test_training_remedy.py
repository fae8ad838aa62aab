"""Further training of a tiny model as a remedy: what is trained on what, and what the mean of trainings concludes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import shotproof as sp
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.changed_catalog import with_changes
from shotproof.core.errors import InputError, InsufficientData
from shotproof.cures.class_parts import CHOOSE, CONFIRM, FIT, part_classes
from shotproof.cures.effects import AS_IS, effects_of, measure
from shotproof.cures.remedy import Remedy, RemedyData, Treatment, remedies
from shotproof.cures.search import find_cure
from shotproof.cures.training_remedy import TrainingRemedy
from shotproof.features.encoder import encode
from shotproof.features.features import Features
from shotproof.learners.method import make_method
from shotproof.models.model import Model
from shotproof.models.model_encoder import ModelEncoder
from shotproof.models.objective import objectives
from shotproof.pipeline.cure import cure_inputs, read_cure, write_cure
from shotproof.pipeline.cure_section import CureSection
from shotproof.tasks.taskset import TaskShape
from shotproof.worlds.dial import DialEncoder
from shotproof.worlds.shapes import ShapesWorld
from tests.cured_worlds import METHOD, cured_world
from tests.models.objectives.untrained_models import model_of
from tests.small_networks import BACKBONE

SHAPE = TaskShape(3, 2, 2)
SMALL = "epochs=1, tasks=2"
WORLD = ShapesWorld(classes=12, train_classes=9, items=24, size=16)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return WORLD.write(tmp_path_factory.mktemp("world"))


@pytest.fixture(autouse=True)
def quiet(catalog: Catalog) -> Iterator[None]:
    with sp.runtime(cache=catalog.root / "cache", workers=1, progress=False, device="cpu"):
        yield


def write_model(catalog: Catalog, objective: str = "protonet") -> Path:
    file = catalog.root / f"{objective}.model"
    model_of(objectives.make(objective), seed=0).write(file)
    return file


@pytest.fixture
def data(catalog: Catalog) -> RemedyData:
    """Pictures with words and contexts, and blurred copies of those to fit on and of one of each other part."""
    encoder = ModelEncoder(write_model(catalog))
    parts = part_classes(catalog, "test", SHAPE.way).catalog
    fit = parts.in_split(FIT)
    others = pa.array([parts.in_split(part).items[0] for part in (CHOOSE, CONFIRM)])
    return RemedyData(
        catalog=parts,
        features=encode(with_changes(catalog, [(others, pa.repeat("blur", 2))]), encoder),
        method=make_method(METHOD),
        attributes=WORLD.attributes(),
        context_column="background",
        changed=encode(with_changes(fit, [(fit.item_column, pa.repeat("blur", len(fit)))]), encoder),
        encoder=encoder,
        shape=SHAPE,
    )


def trained(data: RemedyData, on: str) -> list[Treatment]:
    return remedies.make(f"train(on='{on}', {SMALL})").treatments(data)


def model_of_treatment(treatment: Treatment) -> Model:
    assert treatment.model is not None
    return treatment.model


@pytest.mark.parametrize(
    ("on", "samplers"),
    [
        ("stress", ["fewstab", "ood(context_column='background', hard_ood=False"]),
        ("contexts", ["ood(context_column='background', support_contexts='all'"]),
        ("changes", ["random"]),
    ],
)
def test_models_are_trained_on_tasks_of_the_classes_to_fit_on(on: str, samplers: list[str], data: RemedyData) -> None:
    treatments = trained(data, on)
    assert len({treatment.name for treatment in treatments}) == len(samplers)
    assert data.encoder is not None
    start = ModelEncoder(write_model(data.catalog)).model
    for treatment, sampler in zip(treatments, samplers, strict=True):
        record = model_of_treatment(treatment).record
        assert record.source("model") == start.digest
        assert record.classes == tuple(sorted(set(data.base_catalog.table.column("label").to_pylist())))
        assert record.settings["train_sampler"].startswith(sampler)
        assert [record.settings[name] for name in ("way", "shot", "query", "epochs")] == [3, 2, 2, 1]


def test_each_training_has_its_seed_and_encodes_all_items_and_their_changed_versions(data: RemedyData) -> None:
    (treatment,) = trained(data, "contexts")
    assert treatment.features is not None
    every = (treatment.features, *treatment.replicas)
    assert len({features.digest for features in every}) == 3
    assert len({features.name for features in every}) == 3
    for features in every:
        assert sorted(features.table.column("item").to_pylist()) == sorted(
            data.features.table.column("item").to_pylist()
        )
    # The model that is kept is the one of the first seed.
    file = data.catalog.root / "kept.model"
    model_of_treatment(treatment).write(file)
    again = encode(data.catalog, ModelEncoder(file))
    rows = treatment.features.rows_of(again.table.column("item"))
    np.testing.assert_array_equal(again.array, treatment.features.array[rows])
    assert treatment.apply[-1] == "--encoder model:trained.model"


def test_changed_items_are_trained_on(data: RemedyData) -> None:
    fit = data.base_catalog
    some = replace(data, changed=encode(with_changes(fit, [(fit.item_column[:3], pa.repeat("blur", 3))]), "pixels"))
    digests = [model_of_treatment(trained(each, "changes")[0]).digest for each in (data, some)]
    assert digests[0] != digests[1]


@pytest.mark.parametrize("on", ["stress", "contexts", "changes"])
def test_training_depends_on_the_classes_to_fit_on_alone_and_on_the_seed(on: str, data: RemedyData) -> None:
    table, split = data.catalog.table, np.array(data.catalog.table.column("split").to_pylist())
    labels = np.array(table.column("label").to_pylist(), object)
    labels[split != FIT] = np.random.default_rng(0).permutation(labels[split != FIT])
    table = table.set_column(table.column_names.index("label"), "label", pa.array(labels, pa.string()))
    shuffled = replace(data, catalog=Catalog(table, data.catalog.root, data.catalog.record))
    before, after, other = (
        [model_of_treatment(treatment).digest for treatment in trained(each, on)]
        for each in (data, shuffled, replace(data, seed=1))
    )
    assert after == before
    assert not set(other) & set(before)


def test_a_model_that_classifies_continues_with_tasks(data: RemedyData) -> None:
    encoder = ModelEncoder(write_model(data.catalog, "baseline"))
    (treatment,) = trained(replace(data, encoder=encoder), "contexts")
    assert model_of_treatment(treatment).objective.name == "meta-baseline"


def test_options_of_the_encoder_are_kept(data: RemedyData) -> None:
    encoder = ModelEncoder(write_model(data.catalog), stage=1)
    (treatment,) = trained(replace(data, encoder=encoder), "contexts")
    assert treatment.features is not None
    assert treatment.features.array.shape[1] == encode(data.catalog, encoder).array.shape[1]
    assert treatment.apply[-1] == "--encoder 'model:trained.model(stage=1)'"


@pytest.mark.parametrize(
    ("on", "change", "hint"),
    [
        ("stress", lambda data: replace(data, encoder=None), "shotproof train"),
        ("stress", lambda data: replace(data, attributes=None, context_column=None), "no attributes"),
        ("contexts", lambda data: replace(data, context_column=None), "column with the context"),
        ("changes", lambda data: replace(data, changed=None), "study.change"),
        (
            "changes",
            lambda data: replace(data, method=make_method(f"model:{write_model(data.catalog)}")),
            "--method",
        ),
    ],
)
def test_it_asks_for_what_would_allow_it(
    on: str, change: Callable[[RemedyData], RemedyData], hint: str, data: RemedyData
) -> None:
    with pytest.raises(InputError) as refused:
        trained(change(data), on)
    assert hint in str(refused.value)


def test_classes_that_cannot_give_such_tasks_are_named_by_the_sampler(data: RemedyData) -> None:
    with pytest.raises(InsufficientData) as refused:
        trained(replace(data, shape=TaskShape(3, 20, 20)), "stress")
    assert f"split '{FIT}'" in str(refused.value)


def test_one_training_is_not_enough() -> None:
    with pytest.raises(InputError) as refused:
        remedies.make("train(on='stress', seeds=1)")
    assert "3" in str(refused.value)


@pytest.mark.parametrize("entry", ["train", "training"])
def test_it_is_tried_if_asked_for_alone(entry: str) -> None:
    assert all(remedy.family != "training" for remedy in CureSection().chosen_remedies())
    chosen = CureSection(remedies=(entry, "heads")).chosen_remedies()
    trainings = [remedy.on for remedy in chosen if isinstance(remedy, TrainingRemedy)]
    assert trainings == ["stress", "contexts", "changes"]
    assert len(chosen) == 4


def dialed(share: float) -> Features:
    """Features by which a classifier relies on words to this degree."""
    return encode(ShapesWorld(classes=20, train_classes=12, items=60).catalog(), DialEncoder(share))


@dataclass(frozen=True)
class Replaced(Remedy):
    """Features that stand for those of several trainings."""

    family = "training"
    shares: tuple[float, ...] = ()

    def treatments(self, data: RemedyData) -> list[Treatment]:
        first, *others = map(dialed, self.shares)
        return [Treatment(f"replaced by {self.shares}", features=first, replicas=tuple(others))]


def test_the_effect_is_the_mean_over_the_trainings() -> None:
    world = cured_world(0.6)
    stage, level = world.plan().confirming, 0.95
    (treatment,) = Replaced((0.1, 0.3, 0.5)).treatments(world.data)
    measured = measure(stage, [treatment], world.features, make_method(METHOD), with_halves=False)
    (effect,) = effects_of(measured, treatment.name, AS_IS, level)
    alone, accuracies = [], []
    for share in (0.1, 0.3, 0.5):
        single = Treatment("single", features=dialed(share))
        measured_alone = measure(stage, [single], world.features, make_method(METHOD), with_halves=False)
        alone += effects_of(measured_alone, "single", AS_IS, level)
        accuracy = measured_alone.accuracy("single")
        accuracies.append(measured_alone.interval(accuracy, level).mean)
    assert effect.trainings == pytest.approx([each.difference.mean for each in alone])
    assert effect.difference.mean == pytest.approx(np.mean(effect.trainings))
    assert effect.after.mean == pytest.approx(np.mean([each.after.mean for each in alone]))
    assert measured.interval(measured.accuracy(treatment.name), level).mean == pytest.approx(np.mean(accuracies))
    assert all(each.trainings == () for each in alone)
    # The mean of three varies less over tasks than the most variable of them.
    assert effect.difference.half_width < max(each.difference.half_width for each in alone)


def test_every_training_must_lower_the_loss() -> None:
    world = cured_world(0.6, tasks=80)
    chosen: list[Remedy] = [Replaced((0.1, 0.12, 0.15)), Replaced((0.0, 0.0, 0.64))]
    cure = find_cure(replace(world.plan(), remedies=chosen))
    all_lower, one_raises = cure.tried
    assert [row.effects[0].outcome for row in cure.tried] == ["helps", "cannot tell"]
    assert one_raises.effects[0].difference.high < 0  # conclusive on average
    assert max(one_raises.effects[0].trainings) > 0
    assert cure.recommended == all_lower.remedy
    assert all_lower.title == f"{all_lower.treatment} (mean of 3 trainings)"
    assert "mean of 3 trainings" in cure.sentences()[0]


def test_the_trained_model_is_kept_in_the_folder_of_the_run_with_how_to_use_it(
    catalog: Catalog, tmp_path: Path
) -> None:
    small = {"way": 3, "shot": 2, "query": 2, "epochs": 1, "tasks": 40, "lr": 1e-3, "size": 16}
    sp.train(catalog, "protonet", backbone=BACKBONE, val_split=None, output=catalog.root / "start.model", **small)
    study = sp.Study(catalog, encoder=f"model:{catalog.root / 'start.model'}", attributes=WORLD.attributes())
    study.evaluate(METHOD, on=["random", "fewstab"], way=3, shots=[2], query=4, tasks=60)
    section = CureSection(remedies=(f"train(on='stress', {SMALL})",), tasks=5)
    searched = cure_inputs(study.inputs.quickly(), study.experiment, section)
    cure = write_cure(searched, tmp_path)
    (row,) = cure.tried
    assert row.apply == ("--encoder model:cure/train-on-stress-epochs-1-tasks-2.model",)
    model = Model.read(tmp_path / row.apply[0].removeprefix("--encoder model:"))
    assert model.digest == model_of_treatment(searched.treatments[row.remedy]).digest
    assert [len(effect.trainings) for effect in row.effects] == [3]
    assert read_cure(tmp_path) == cure
