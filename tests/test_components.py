"""What every registered component but samplers and methods promises: one record, from which all else follows."""

from __future__ import annotations

import dataclasses
import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shotproof.attributes.attributes import Attributes
from shotproof.attributes.detector import detectors
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import layouts
from shotproof.changes.change import changes
from shotproof.core.errors import InputError
from shotproof.core.file_options import FileOptions
from shotproof.core.options import Component, Option
from shotproof.core.registry import Registry
from shotproof.cures.remedy import remedies
from shotproof.features.encoder import encoders
from shotproof.features.features import Features
from shotproof.features.fitted_map import FittedMap
from shotproof.features.transforms import transforms
from shotproof.functional.nuisance import projection_map
from shotproof.masks.cutter import cutters
from shotproof.models.augment import augmentations
from shotproof.models.backbone import backbones
from shotproof.models.objective import objectives

KINDS: list[Registry[Any]] = [
    layouts,
    cutters,
    detectors,
    encoders,
    transforms,
    changes,
    objectives,
    backbones,
    augmentations,
    remedies,
]
NAMES = [(registry, name) for registry in KINDS for name in registry]
OPTIONS = [(registry, name, each) for registry, name in NAMES for each in registry.get(name).options()]
every_component = pytest.mark.parametrize(
    ("registry", "name"), NAMES, ids=[f"{registry.kind}-{name}" for registry, name in NAMES]
)
every_option = pytest.mark.parametrize(
    ("registry", "name", "option"), OPTIONS, ids=[f"{kind.kind}-{name}-{each.name}" for kind, name, each in OPTIONS]
)
# Values that the rule of an option does not tell.
VALUES: dict[str, object] = {
    "attributes": "attributes.parquet",
    "base": "base.parquet",
    "catalog": "catalog.parquet",
    "classes": ("bird", "cat"),
    "extensions": ("png", "wav"),
    "factors": ("frame",),
    "file": "rows.csv",
    "high_hz": 4000.0,
    "path": "model.onnx",
    "pools": 1,
    "rate": 32_000,
    "statistics": ("std",),
    "seconds": 4.0,
    "templates": ("a photo of a {}.", "{}"),
    "size": 32,
    "stage": 2,
    "mean": (0.5, 0.5, 0.5),
    "std": 0.25,
}


@pytest.fixture(autouse=True)
def base_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that some transforms are spelled with."""
    Features.from_array(["b"], np.ones((1, 4))).write(tmp_path / "base.parquet")
    columns = {name: ["b"] for name in ("item", "path", "label", "split")}
    Catalog(pa.table(columns)).write(tmp_path / "catalog.parquet")
    Attributes.from_words({"b": ["red"]}).write(tmp_path / "attributes.parquet")
    FittedMap.of(projection_map(np.eye(4)[:, :1])).write(tmp_path / "map.parquet")
    monkeypatch.chdir(tmp_path)


def required(registry: Registry[Any], name: str) -> dict[str, object]:
    return {option.name: other_value(option) for option in registry.get(name).options() if option.required}


def other_value(option: Option) -> object:
    """A value that is not the default, and may be given."""
    if option.kind == Path | FittedMap:
        return "map.parquet"
    if option.name in VALUES:
        return VALUES[option.name]
    if option.choices:
        return next(choice for choice in option.choices if choice != option.default)
    if isinstance(option.default, tuple):
        return option.default[:1]
    if isinstance(option.default, bool) or option.kind in (bool, bool | None):
        return not option.default
    if isinstance(option.default, float) or option.kind in (float, float | None):
        return option.default / 2 if option.default else 0.5
    if isinstance(option.default, int) or option.kind is int:
        return (option.default or 0) + 2
    return "other"


def changed(registry: Registry[Any], name: str) -> Component:
    """The component with all options at other values than their defaults."""
    options = registry.get(name).options()
    no_map = any(option.name in ("stage", "statistics") for option in options)
    values = {option.name: other_value(option) for option in options if option.name != "maps" or not no_map}
    return registry.make({"name": name, **values})


@every_component
def test_its_spelling_makes_it_again(registry: Registry[Any], name: str) -> None:
    plain = registry.make({"name": name, **required(registry, name)})
    other = changed(registry, name)
    for component in (plain, other):
        again = registry.make(component.spelling)
        assert again.spelling == component.spelling
        assert again.parameters() == component.parameters()
        if not isinstance(component, FileOptions):  # whose files are spelled with their digests
            assert again == component
            assert hash(again) == hash(component)
    assert (plain == other) == all(option.required or not option.recorded for option in plain.options())


@every_component
def test_what_is_not_recorded_is_neither_spelled_nor_compared(registry: Registry[Any], name: str) -> None:
    unrecorded = {option.name: other_value(option) for option in registry.get(name).options() if not option.recorded}
    given = required(registry, name)
    assert registry.make({"name": name, **given, **unrecorded}) == registry.make({"name": name, **given})
    component = registry.make({"name": name, **given, **unrecorded})
    assert component.spelling == registry.make({"name": name, **given}).spelling
    assert not component.parameters().keys() & unrecorded.keys()
    for option, value in unrecorded.items():
        assert getattr(component, option) == value


@every_component
def test_it_cannot_be_changed_and_travels(registry: Registry[Any], name: str) -> None:
    component = changed(registry, name)
    for each in component.options():
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(component, each.name, getattr(component, each.name))
    copy = pickle.loads(pickle.dumps(component))
    assert copy == component
    assert copy.spelling == component.spelling
    assert vars(copy).keys() >= {option.name for option in component.options()}


@every_component
def test_it_tells_what_it_is(registry: Registry[Any], name: str) -> None:
    kind = registry.get(name)
    assert kind.about
    assert "\n" not in kind.about
    if kind.example:
        assert type(registry.make(kind.example)) is kind
    assert kind.example or not any(option.required for option in kind.options())


@every_component
def test_an_option_that_it_has_not_is_referred_to_the_nearest(registry: Registry[Any], name: str) -> None:
    given: Mapping[str, object] = required(registry, name)
    for option in registry.get(name).options():
        told = re.escape(f"{registry.kind} '{name}' has no option '{option.name}x'")
        with pytest.raises(InputError, match=f"{told}.*did you mean '"):
            registry.make({"name": name, **given, f"{option.name}x": 1})


@every_option
def test_an_option_is_explained_and_its_default_is_allowed(registry: Registry[Any], name: str, option: Option) -> None:
    assert option.help
    assert not option.help.endswith(".")
    assert option.required or option.check(option.default) == option.default


@every_option
def test_what_an_option_cannot_be_is_refused_by_its_name(registry: Registry[Any], name: str, option: Option) -> None:
    wrong: list[object] = [object()]
    for bound, beyond in ((option.least, -1), (option.above, 0), (option.most, 1)):
        if bound is not None:
            wrong.append(bound + beyond)
    if option.choices:
        wrong.append("no such choice")
    given = required(registry, name)
    for value in wrong:
        told = re.escape(f"{registry.kind} '{name}': {option.name}: expected ")
        with pytest.raises(InputError, match=f"{told}.*found"):
            registry.make({"name": name, **given, option.name: value})
