"""Remedy that trains the model behind the features further, on tasks of the classes to fit on."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.changed_catalog import CHANGED, unchanged_names, with_changes
from shotproof.core.errors import InputError, InsufficientData
from shotproof.core.limits import EPOCHS
from shotproof.core.options import option
from shotproof.cures.class_parts import FIT
from shotproof.cures.remedy import Remedy, RemedyData, Treatment
from shotproof.features.encoder import encode
from shotproof.features.features import Features
from shotproof.tasks.sampler import Sampler, samplers

if TYPE_CHECKING:
    from shotproof.models.model import Model
    from shotproof.models.model_encoder import ModelEncoder

ENOUGH_TO_CONCLUDE = 3  # trainings: a single one may help by its seed
_TRAINED_FILE = Path("trained.model")


@dataclass(frozen=True)
class TrainingRemedy(Remedy):
    """Further training of the encoder's model, several times with different seeds; the mean of these is compared.

    A model trained on tasks keeps its objective; others continue with `meta-baseline`.
    """

    about = "train the encoder's model further: on stress tasks, mixed contexts or changed items"
    example = "train(on='contexts')"
    family = "training"

    on: Literal["stress", "contexts", "changes"] = option(
        help="stress: tasks of fewstab or, with contexts, of ood; contexts: tasks whose supports have many contexts "
        "and whose queries have others; changes: items and changed versions of them",
    )
    seeds: int = option(ENOUGH_TO_CONCLUDE, "number of trainings", least=ENOUGH_TO_CONCLUDE, most=100)
    epochs: int = option(20, "epochs of each training", within=EPOCHS)
    tasks: int = option(150, "tasks per epoch", least=1)
    lr: float = option(1e-3, "initial learning rate", above=0)

    def treatments(self, data: RemedyData) -> list[Treatment]:
        """Propose a model trained on each kind of tasks that the classes to fit on can give."""
        encoder = _require_model(data)
        proposals, reasons = [], []
        for sampler, catalog in self._tasks(data):
            try:
                models = self._train(encoder.model, sampler, catalog, data)
            except InsufficientData as error:
                reasons.append(str(error))
            else:
                name = f"{self} with {sampler.name} tasks" if self.on == "stress" else str(self)
                proposals.append(self._treatment(name, encoder, models, data))
        if not proposals:
            raise InsufficientData("; ".join(reasons))
        return proposals

    def _tasks(self, data: RemedyData) -> Iterator[tuple[Sampler, Catalog]]:
        """Yield samplers of the tasks to train on, with the items that they draw from."""
        catalog = data.base_catalog
        if self.on == "changes":
            yield samplers.make("random", skip_small_classes=True), _with_changed(catalog, data.require_changed())
            return
        if self.on == "contexts":
            yield _out_of_context(data.require_contexts(), support_contexts="all"), catalog
            return
        if data.attributes is None and data.context_column is None:
            raise InputError("the data has no attributes and no contexts that tasks could stress")
        if data.attributes is not None:
            yield samplers.make("fewstab", skip_small_classes=True), catalog
        if data.context_column is not None:
            yield _out_of_context(data.context_column, support_contexts=1), catalog

    def _train(self, model: Model, sampler: Sampler, catalog: Catalog, data: RemedyData) -> list[Model]:
        """Train the model further, once per seed.

        Raises:
            InsufficientData: the classes to fit on cannot give such tasks.
        """
        from shotproof.training.train import train

        return [
            train(
                catalog,
                model.objective if model.objective.trains_on == "tasks" else "meta-baseline",
                split=FIT,
                val_split=None,
                from_model=model,
                seed=data.seed + number,
                attributes=data.attributes if "attributes" in sampler.takes else None,
                train_sampler=sampler.spelling,
                way=min(data.shape.way, pc.count_distinct(catalog.table.column("label")).as_py()),
                shot=data.shape.shot,
                query=data.shape.query,
                augment=model.record.settings.get("augment"),
                epochs=self.epochs,
                tasks=self.tasks,
                # As the last stage of the recipe `shotproof`.
                tasks_per_update=1,
                optimizer="sgd",
                lr=self.lr,
                schedule="cosine",
            )
            for number in range(self.seeds)
        ]

    def _treatment(self, name: str, encoder: ModelEncoder, models: list[Model], data: RemedyData) -> Treatment:
        """Encode all items by each model."""
        catalog = _with_changed(data.catalog, data.features)
        features = []
        with TemporaryDirectory() as folder:
            for number, model in enumerate(models):
                file = Path(folder) / f"{number}.model"
                model.write(file)
                encoded = encode(catalog, replace(encoder, path=file))
                record = replace(encoded.record, name=f"{data.features.name}, {name}, seed {data.seed + number}")
                features.append(replace(encoded, record=record))
        return Treatment(
            name,
            features=features[0],
            replicas=tuple(features[1:]),
            model=models[0],
            apply=(
                f'cure.treatments["{self}"].model.write("{_TRAINED_FILE}")',
                apply_model(replace(encoder, path=_TRAINED_FILE)),
            ),
        )


def apply_model(encoder: object) -> str:
    """Spell the flag that applies a trained model, given its encoder."""
    return f"--encoder {shlex.quote(str(encoder))}"


def _require_model(data: RemedyData) -> ModelEncoder:
    """Return the encoder, if it is a model that can be trained.

    Raises:
        InputError: it is not, or the method needs the model as it is.
    """
    from shotproof.models.model_encoder import ModelEncoder

    if not isinstance(data.encoder, ModelEncoder):
        raise InputError(
            f"the encoder '{data.features.name}' is not a trained model of ours: train one with shotproof train, "
            "and use the encoder model:FILE, without transforms"
        )
    if data.method.name == "model":
        raise InputError(
            f"method '{data.method}' is the head of the model as it is: treat another one, e.g. --method ncc"
        )
    return data.encoder


def _out_of_context(column: str, support_contexts: int | Literal["all"]) -> Sampler:
    """Return the sampler of tasks whose queries have other contexts than the supports of their class."""
    return samplers.make(
        "ood", context_column=column, support_contexts=support_contexts, hard_ood=False, skip_small_classes=True
    )


def _with_changed(catalog: Catalog, features: Features) -> Catalog:
    """Add the changed versions of a catalog's items that features have."""
    names = features.table.column("item")
    names = pc.drop_null(names.filter(pc.invert(pc.is_in(names, value_set=catalog.item_column)))).combine_chunks()
    pairs = [
        (item, name.removeprefix(item + CHANGED))
        for item, name in zip(unchanged_names(catalog, names).to_pylist(), names.to_pylist(), strict=True)
        if item is not None
    ]
    if not pairs:
        return catalog
    items, spellings = (pa.array(values, pa.string()) for values in zip(*pairs, strict=True))
    return with_changes(catalog, [(items, spellings)])
