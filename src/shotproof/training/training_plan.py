"""Training plans: what is trained on which data, checked before anything is decoded, then carried out."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, InsufficientData
from shotproof.core.nouns import counted
from shotproof.core.plain_values import plain
from shotproof.core.records import Maker, ModelRecord, Source
from shotproof.core.runtime.devices import choose_device
from shotproof.core.runtime.runtime import Runtime, current_runtime
from shotproof.features.features import Features
from shotproof.models.augment import Augmentation, augmentations
from shotproof.models.backbone import Backbone
from shotproof.models.decoded_items import ItemStore, medium_of
from shotproof.models.model import Model, blank_network
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import Objective, TrainsOn
from shotproof.models.preprocessing import Medium, Preprocessing
from shotproof.tasks.sampler import BoundSampler, Sampler, sample, samplers
from shotproof.tasks.taskset import TaskSet, TaskShape
from shotproof.training.checkpoint import EarlierTraining, checkpoint_path, plan_from_record
from shotproof.training.settings import TrainingSettings
from shotproof.training.trainer import Trainer, TrainingItems, Validation
from shotproof.training.training_batches import START, derive_seed, task_rows

logger = logging.getLogger("shotproof")

# SimCLR's. If views kept their colors, these would be enough to tell items apart, and nothing else would be learned.
VIEWS = "resized-crop(area=0.2, jitter=0.8, hue=0.2, gray=0.2)"


@dataclass
class TrainingPlan:
    """Plan of a training, checked before anything is decoded; `start` is the model that training starts from."""

    catalog: Catalog
    objective: Objective[Any]
    backbone: Backbone
    settings: TrainingSettings
    split: str | None
    val_split: str | None
    start: Model | None
    seed: int
    attributes: Attributes | None
    features: Features | None

    def __post_init__(self) -> None:
        settings = self.settings
        self.shape = TaskShape(settings.way, settings.shot, settings.query)
        self.train_items = self.catalog.in_split(self.split)
        self.val_items = None if self.val_split is None else self.catalog.in_split(self.val_split)
        self.classes = sorted(set(self.train_items.table.column("label").to_pylist()))
        self._require_disjoint()
        self._require_classes()
        self.medium = medium_of(self.train_items)
        self.augmentation = _make_augmentation(settings.augment, self.medium, self.objective.trains_on)
        with _naming_split(self.split, "for training"):
            self.sampler = self._bind_sampler()
        with _naming_split(self.val_split, "for validation; to skip it, use val_split=None or --val-split none"):
            self.val_tasks = self._draw_val_tasks()
        self.preprocessing = self._make_preprocessing()

    def run(self, runtime: Runtime, output: Path | None, replace: bool) -> Model:
        """Train, or resume the same training, and write the model if an output is given.

        Args:
            runtime: runtime settings
            output: path of the model
            replace: whether to start over if another training has left its model or checkpoint at the output

        Raises:
            Mismatch: another training has left its model or checkpoint at the output.
            TrainingFailed: the loss is not finite, or memory ran out.
        """
        checkpoint = None if output is None else checkpoint_path(output)
        log = None if output is None else output.with_name(f"{output.name}.jsonl")
        earlier = None if output is None else EarlierTraining.find(output, self.recorded_plan(), replace)
        if earlier is not None and earlier.model is not None:
            logger.warning("%s: this training has already finished; delete the file to train again", output)
            return earlier.model
        device = choose_device(runtime.device)
        store = ItemStore.of(self.train_items, self.preprocessing, runtime)
        if self.start is None:
            self.preprocessing = self.preprocessing.fitted(store.values)
        plan = {**self.recorded_plan(), "items": store.key}
        if output is not None:
            EarlierTraining.find(output, plan, replace)
        class_numbers = {name: number for number, name in enumerate(self.classes)}
        labels = torch.tensor([class_numbers[label] for label in self.train_items.table.column("label").to_pylist()])
        trainer = Trainer(
            net=_to_device(self._build_network(), device),
            objective=self.objective,
            settings=self.settings,
            items=TrainingItems(store, store.tensor(device), labels, class_numbers),
            preprocessing=self.preprocessing,
            augmentation=self.augmentation,
            sampler=self.sampler,
            validation=self._make_validation(runtime, device),
            seed=self.seed,
            plan=plan,
            checkpoint=checkpoint,
            log=log,
        )
        trainer.run(runtime)
        record = dataclasses.replace(
            self._record,
            architecture=plain(dict(self.backbone.architecture(trainer.net.backbone))),
            preprocessing=plain(self.preprocessing.to_meta()),
            best=trainer.best_epoch,
            curve=tuple(trainer.curves.rows),
        )
        model = Model.of(trainer.net, record)
        if output is not None:
            model.write(output)
        if checkpoint is not None:
            checkpoint.unlink(missing_ok=True)
        return model

    def _build_network(self) -> FewShotNetwork:
        """Build the initial network."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(self.seed, START))
            # If weights are copied from `start`, the backbone need not load pretrained weights first.
            start = None if self.objective.starts_anew else self.start
            same = start is not None and self.backbone == start.backbone
            architecture = start.record.architecture if start is not None and same else None
            count, way = len(self.classes), self.settings.way
            net = blank_network(self.backbone, self.objective, self.preprocessing, count, way, architecture)
        self.objective.begin(net, self.start, self.classes)
        return net

    def _make_preprocessing(self) -> Preprocessing:
        """Return the preprocessing of the model that training starts from, or of the backbone."""
        if self.start is not None:
            return self.start.preprocessing
        return self.backbone.preprocessing(self.medium, self.settings.size, self.settings.seconds)

    def _bind_sampler(self) -> BoundSampler[Sampler] | None:
        if self.objective.trains_on != "tasks":
            return None
        sampler = samplers.make(self.settings.train_sampler)
        data = {"attributes": self.attributes, "features": self.features}
        inputs: dict[str, Any] = {role: value for role, value in data.items() if role in sampler.takes}
        return sampler.bind(self.train_items, self.shape, self.seed, **inputs)

    def _draw_val_tasks(self) -> TaskSet | None:
        """Draw the validation tasks."""
        if self.val_items is None:
            return None
        return sample(
            self.val_items,
            "random",
            split=None,
            way=self.settings.way,
            shot=self.settings.shot,
            query=self.settings.query,
            tasks=self.settings.val_tasks,
            seed=self.seed,
            runtime=dataclasses.replace(current_runtime(), progress=False, workers=1),
        )

    def _make_validation(self, runtime: Runtime, device: torch.device) -> Validation | None:
        if self.val_items is None or self.val_tasks is None:
            return None
        store = ItemStore.of(self.val_items, self.preprocessing, runtime)
        numbers = dict.fromkeys(self.val_items.table.column("label").to_pylist(), 0)
        rows = task_rows(self.val_tasks, store, numbers).to(device)
        return Validation(store.tensor(device), rows, self.preprocessing)

    def _require_disjoint(self) -> None:
        if self.val_items is None:
            return
        shared = sorted(set(self.classes) & set(self.val_items.table.column("label").to_pylist()))
        if shared:
            examples = ", ".join(f"'{label}'" for label in shared[:3])
            raise InputError(
                f"split '{self.split}' and split '{self.val_split}' share {len(shared)} classes, e.g. {examples}: "
                "classes of training and validation must differ"
            )

    def _require_classes(self) -> None:
        if len(self.classes) < 2:
            raise InsufficientData(
                f"split '{self.split}' has {counted(len(self.classes), 'class', 'classes')}: training needs at least 2"
            )

    def recorded_plan(self) -> dict[str, Any]:
        """Return the plan that a checkpoint or finished model must have to belong to this training."""
        return plan_from_record(self._record)

    @property
    def _record(self) -> ModelRecord:
        """Return the part of the model's record that is known before training."""
        sources = {"catalog": Source(self.catalog.digest, self.catalog.record.name)}
        if self.attributes is not None:
            sources["attributes"] = Source(self.attributes.digest, self.attributes.record.name)
        for role, data in (("model", self.start), ("features", self.features)):
            if data is not None:
                sources[role] = Source(data.digest, data.name)
        return ModelRecord(
            sources=sources,
            backbone=Maker.of(self.backbone),
            objective=Maker.of(self.objective),
            settings=plain(self.settings.parameters()),
            split=self.split,
            val_split=self.val_split,
            classes=tuple(self.classes),
            seen=tuple(sorted({*self.classes, *(self.start.record.seen if self.start else ())})),
            seed=self.seed,
        )


@contextlib.contextmanager
def _naming_split(split: str | None, purpose: str) -> Iterator[None]:
    """Add the split and its purpose to errors about too little data."""
    try:
        yield
    except InsufficientData as error:
        raise error.with_prefix(f"split '{split}' ({purpose}): ") from error


def _to_device(net: FewShotNetwork, device: torch.device) -> FewShotNetwork:
    """Move a network to a device; on a GPU, use the channels-last layout, which is faster."""
    if device.type != "cuda":
        return net.to(device)
    return net.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


def _make_augmentation(spelling: str, medium: Medium, trains_on: TrainsOn) -> Augmentation:
    """Build the augmentation of this spelling; auto is the medium's default, which is stronger for views of images."""
    default = "spec-augment" if medium == "sound" else VIEWS if trains_on == "views" else "crop"
    augmentation = augmentations.make(default if spelling == "auto" else spelling)
    if augmentation.medium not in (None, medium):
        raise InputError(
            f"augmentation '{augmentation.name}' is for {augmentation.medium}s, but the items are {medium}s: "
            f"use e.g. {default}"
        )
    return augmentation
