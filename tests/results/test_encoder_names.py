"""Short names of encoders: no longer than needed, and never two alike."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shotproof.results.encoder_names import short_encoder_names


def names(*spellings: str) -> list[str]:
    return list(short_encoder_names(spellings).values())


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("model:shotproof-demo-train/shortcut-100.model", "shortcut-100"),
        ("model:nets/a.model(maps=True) > l2 > center", "a(maps=True) > l2 > center"),
        ("onnx:nets/b.v2.onnx", "b.v2"),
        ("onnx:C:\\nets\\b.onnx", "b"),
        ("file:features.npz", "features"),
        ("hf:../models/dino-v1.5", "dino-v1.5"),  # a folder has no suffix
        ("hf:exports/dino/last/", "last"),
        ("two-tower:./clip(prompt='a {}')", "clip(prompt='a {}')"),
        ("model:pixels.model", "pixels.model"),  # pixels is an encoder of its own
        # What is no file, or cannot be told from a name on a hub, stays.
        ("hf:facebook/dinov2-small", "hf:facebook/dinov2-small"),
        ("hf:dinov2", "hf:dinov2"),
        ("lite0 > l2", "lite0 > l2"),
        ("dial(share=0.5)", "dial(share=0.5)"),
        ("unknown", "unknown"),
        ("my own: features/best", "my own: features/best"),
        ("somebody:else/a.b", "somebody:else/a.b"),
    ],
)
def test_one_encoder(spelling: str, name: str) -> None:
    assert names(spelling) == [name]


def test_as_much_of_the_path_is_told_as_tells_encoders_apart() -> None:
    assert names("model:x/a.model", "model:y/a.model", "model:y/b.model") == ["x/a", "y/a", "b"]
    assert names("model:x/a.model", "onnx:x/a.onnx") == ["a.model", "a.onnx"]
    assert names("model:p/x/a.model", "model:q/x/a.model") == ["p/x/a", "q/x/a"]
    assert names("model:a.model", "model:a.model > l2") == ["a", "a > l2"]


def test_paths_that_do_not_tell_encoders_apart_give_way_to_the_spelling() -> None:
    assert names("model:a.net", "onnx:a.net") == ["model:a.net", "onnx:a.net"]
    assert names("model:x/a.model", "model:a.model", "model:y/x/a.model") == [
        "model:x/a.model",
        "model:a.model",
        "y/x/a",
    ]


def test_a_name_that_somebody_gave_is_not_taken_from_them() -> None:
    assert names("best", "model:best.model") == ["best", "best.model"]


SPELLINGS = [
    f"{kind}:{'/'.join(parts)}{suffix}"
    for kind, suffix in product(("model", "onnx", "hf", "file"), ("", ".model", ".onnx"))
    for depth in range(1, 5)
    for parts in product("ab", repeat=depth)
]


@given(st.lists(st.sampled_from(SPELLINGS), unique=True, max_size=6))
def test_no_two_encoders_have_one_name(spellings: list[str]) -> None:
    found = short_encoder_names(spellings)
    assert list(found) == spellings
    assert len(set(found.values())) == len(spellings)
