"""The numeric fixture that proves every built-in method: one small task by formula, and what each head makes of it.

FIX-S is the task of `drawn_tasks.formula`; FIX-P is shifted by 2.5, so that all values are positive; FIX-M sees each
row as a map of 4 channels and 2 locations; FIX-C is FIX-S centered on a base mean. The easy variant of each has a
smaller amplitude (FIX-EASY), and every head tells its classes apart unless its row says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from tests.drawn_tasks import Batch, formula

Fixture = Literal["S", "P", "M", "C"]
EASY = 0.3
HARD = 1.2


@dataclass(frozen=True)
class Row:
    """What a method, as spelled, gives on a fixture.

    scores: of query 0, to 1e-5; None where only the number of correct answers is known
    correct, easy: of 12 queries, on the fixture and on its easy variant
    softmax: the scores are logits, and the row has their probabilities
    """

    spec: str
    scores: Sequence[float] | None
    correct: int
    fixture: Fixture = "S"
    easy: int = 12
    softmax: bool = False


# Append the rows of a method here. One without a row needs an entry in PROPERTY_TESTS.
ROWS: dict[str, list[Row]] = {
    "ncc": [Row("ncc", (-10.315693, -12.826701, -21.843234), 10)],
    "cosine": [
        Row("cosine", (0.253750, -0.197663, -0.432089), 9),
        Row("cosine(rows='raw')", (0.245444, -0.025486, -0.654048), 9),
    ],
    "logistic": [Row("logistic", (0.489197, 0.289421, 0.221382), 11, softmax=True)],
    "ridge": [
        Row("ridge", (0.072890, -0.008418, -0.116377), 11),
        Row("ridge(penalty=1)", (0.816164, 0.019014, -0.176712), 12),
    ],
    "knn": [Row("knn", None, 10)],
    "simpleshot": [
        Row("simpleshot(form='UN')", (-10.315693, -12.826701, -21.843234), 10),
        Row("simpleshot", (-1.174445, -1.671101, -2.106253), 9, "C"),
    ],
    "matching": [
        Row("matching", (-0.273482, -1.430146, -12.751771), 10),
        Row("matching(scale=10)", (-0.768604, -0.922211, -1.975413), 10),
    ],
    "linear": [Row("linear(init='zero', batch=None)", (0.716275, 0.026204, -0.742478), 11)],
    "svm": [Row("svm", (0.631414, -0.106759, -0.524655), 12)],
    "diffkendall": [
        Row("diffkendall", (0.142857, -0.071429, -0.428571), 9),
        Row("diffkendall(form='smooth')", (11.196479, 0.207103, -28.898577), 9),
    ],
    "dn4": [
        Row("dn4(k=1)", (0.580611, 0.867158, 1.586282), 7, "M"),
        Row("dn4", (0.696240, 0.776821, 2.015584), 9, "M"),
    ],
    "deepbdc": [Row("deepbdc", (-1.923185, -1.881516, -0.536372), 3, "M")],
    "frn": [Row("frn(divide=False)", (-3.305517, -2.449722, -1.270050), 5, "M")],
    "mcl": [Row("mcl", (0.000269, 0.000001, 0.999730), 8, "M")],
    "adm": [Row("adm", (-98.730745, -261.893004, -124.473411), 11, "M")],
    "hela-vfa": [Row("hela-vfa", (-0.258367, -0.150590, -0.085262), 4)],
    "bd-cspn": [
        Row("bd-cspn", (0.477166, -0.253237, -0.470581), 7),
        Row("bd-cspn(form='laplacianshot')", (-0.515982, -1.792432, -1.856983), 8, "C"),
    ],
    "laplacianshot": [
        Row("laplacianshot", (0.658780, 0.219913, 0.121307), 6, "C"),
        Row("laplacianshot(strength=0.7, rectify=False)", (0.530608, 0.319844, 0.149548), 6),
    ],
    "tim": [Row("tim", (0.999719, 0.000139, 0.000143), 8, softmax=True)],
    "pt-map": [Row("pt-map", (1.000520, 0.0, 0.0), 8, "P")],
    "proto-lp": [Row("proto-lp", (1.022513, 0.0, 0.0), 8, "P")],
    "paddle": [
        Row("paddle(penalty=0, steps=20, scale='unit')", (0.368637, 0.328842, 0.302521), 9),
        Row("paddle(penalty=12)", (0.022857, 0.682763, 0.294381), 4, easy=4),
        Row("paddle", (0.0, 1.0, 0.0), 4, easy=4),
    ],
    "bpa": [Row("bpa", (-4.193176, -4.083016, -4.055707), 9)],
    "ecpe": [Row("ecpe", (0.556496, 0.218784, 0.224753), 8, "P")],
    "transductive-finetune": [Row("transductive-finetune(epochs=0)", (0.404565, 0.385356, 0.085868), 9)],
}

# Methods that have no row, each with the test that proves it: `module:test`, under tests/learners.
PROPERTY_TESTS: dict[str, str] = {
    "dn4-global": "heads.test_maps:test_on_whole_items_one_shot_is_the_nearest_neighbor",
    "baseline++": "heads.inductive.test_gradient_descent:test_the_cosine_head_is_that_of_torch",
    "zero-shot": "heads.test_texts:test_scores_are_those_of_the_formula",
    "tip-adapter": "heads.test_texts:test_scores_are_those_of_the_formula",
    "tip-adapter-f": "heads.test_texts:test_training_is_that_of_torch",
    "text-probe": "heads.test_texts:test_training_is_that_of_torch",
    "chat": "incontext.test_chat:test_counts_are_those_of_the_model_behind_the_server",
    "anil": "adaptation.test_learned_start:test_unless_told_steps_and_rate_are_the_models",
    "boil": "adaptation.test_learned_start:test_unless_told_steps_and_rate_are_the_models",
    "maml": "adaptation.test_learned_start:test_unless_told_steps_and_rate_are_the_models",
    "finetune": "adaptation.test_with_steps:test_finetune_is_adam_on_the_backbone_of_each_task",
    "finetune-head": "adaptation.test_with_steps:test_finetune_head_is_sgd_on_backbone_and_head_of_each_task",
    "lp-ft": "adaptation.test_without_steps:test_the_probe_of_lp_ft_is_the_head_of_baseline_plus_plus",
    "transductive-finetune-network": (
        "adaptation.test_without_steps:test_transductive_finetuning_begins_as_its_head_on_features"
    ),
    "tsa": "adaptation.test_with_steps:test_tsa_is_adadelta_on_convolutions_beside_the_backbones",
    "ett": "adaptation.test_ett:test_ett_is_adamw_on_what_is_beside_the_transformer_of_each_task",
    "lora": "adaptation.test_with_steps:test_lora_changes_every_matrix_by_one_of_its_rank",
    "alpha-tim": "test_plain_heads:test_a_batched_head_gives_what_the_plain_loop_gives",
}


def fixture(name: Fixture, amplitude: float = HARD) -> tuple[Batch, Tensor]:
    """The task of a fixture, and the labels of its 12 queries: [1, 12]."""
    batch, truth = formula(amplitude)
    change = {"S": lambda rows: rows, "P": lambda rows: rows + 2.5, "M": _as_maps, "C": lambda rows: rows - BASE_MEAN}
    return batch._replace(support=change[name](batch.support), query=change[name](batch.query)), truth


BASE_MEAN = 0.1 * torch.arange(1, 9, dtype=torch.float64).sin()


def _as_maps(rows: Tensor) -> Tensor:
    """Rows [1, r, 8] to maps of 4 channels and 2 x 1 locations, location p from features 4p to 4p + 3."""
    return rows.unflatten(-1, (2, 4)).mT.unsqueeze(-1)
