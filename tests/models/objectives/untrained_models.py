"""Models as training would write them, with weights as drawn."""

from __future__ import annotations

from typing import Any

from shotproof.core.plain_values import plain
from shotproof.core.records import Maker, ModelRecord
from shotproof.models.backbone import backbones
from shotproof.models.model import Model
from shotproof.models.objective import Objective
from shotproof.models.preprocessing import ImagePreprocessing
from tests.small_networks import BACKBONE, CLASSES, SIDE, WAY, network_of

NAMES = tuple(f"class{number}" for number in range(CLASSES))


def model_of(objective: Objective[Any], seed: int) -> Model:
    record = ModelRecord(
        backbone=Maker.of(backbones.make(BACKBONE)),
        objective=Maker.of(objective),
        preprocessing=plain(ImagePreprocessing(size=SIDE, stored=SIDE).to_meta()),
        settings={"way": WAY},
        classes=NAMES,
    )
    return Model.of(network_of(objective, seed=seed), record)
