from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

import shotproof
from shotproof.core.declared import declared
from shotproof.core.errors import InputError, UnknownName
from shotproof.core.options import Component, option
from shotproof.core.registry import Registry, registries
from shotproof.core.runtime.runtime import Runtime

ROOT = Path(__file__).parents[2]


class Part(Component):
    kind: ClassVar[str] = "part"


@dataclass(frozen=True)
class Wheel(Part):
    about: ClassVar[str] = "it turns"
    spokes: int = option(3, "how many", least=1)


@dataclass(frozen=True)
class Door(Part):
    pass


@pytest.fixture
def registry() -> Iterator[Registry[Part]]:
    yield Registry("part", {"door": f"{__name__}:Door", "broken": "no_such_module:Thing"})
    registries.pop("part", None)


def test_names_are_sorted_and_import_nothing(registry: Registry[Part]) -> None:
    registry.register("a-wheel", Wheel)
    assert registry.names() == list(registry) == ["a-wheel", "broken", "door"]
    assert len(registry) == 3
    assert "door" in repr(registry)


def test_a_builtin_is_imported_when_it_is_used(registry: Registry[Part]) -> None:
    assert registry.get("door") is registry.Door is Door
    with pytest.raises(ModuleNotFoundError):
        registry.get("broken")
    with pytest.raises(AttributeError, match="there is no part class 'Window'"):
        registry.Window  # noqa: B018


def test_one_can_be_added_and_taken_back(registry: Registry[Part]) -> None:
    registry.register("wheel", Wheel)
    assert registry.make("wheel(spokes=4)") == Wheel(4)
    assert (Wheel().name, registry.Wheel) == ("wheel", Wheel)
    for name in ("wheel", "door"):
        with pytest.raises(InputError, match=f"part '{name}' is .*registered"):
            registry.register(name, Wheel)
    registry.unregister("wheel")
    registry.unregister("never added")
    assert registry.names() == ["broken", "door"]
    assert Wheel().name == "Wheel"


def test_only_components_of_the_kind_are_registered(registry: Registry[Part]) -> None:
    for other in (dict, lambda: Wheel(), Component):
        with pytest.raises(InputError, match="part 'x': expected a class derived from Part"):
            registry.register("x", other)  # type: ignore[arg-type]


def test_an_unknown_name_gets_the_nearest(registry: Registry[Part]) -> None:
    with pytest.raises(UnknownName, match="unknown part 'dor': did you mean 'door'"):
        registry.make("dor")


def test_another_package_adds_one_by_an_entry_point(
    registry: Registry[Part], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "spare-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: spare\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[shotproof.parts]\nspare = {__name__}:Wheel\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert registry.names() == ["broken", "door", "spare"]
    assert registry.make("spare(spokes=5)") == Wheel(5)
    assert Wheel(5).spelling == "spare(spokes=5)"


def _known_in_a_worker(name: str) -> tuple[str, int]:
    component = registries["part"].make(name)
    return type(component).__qualname__, component.parameters()["spokes"]


def test_what_is_registered_at_run_time_is_known_to_worker_processes(registry: Registry[Part]) -> None:
    registry.register("wheel", Wheel)
    runtime = Runtime(workers=2, progress=False)
    names = [f"wheel(spokes={spokes})" for spokes in (1, 2, 3, 4)]
    assert list(runtime.map(_Named(registry), names, title="")) == [("Wheel", spokes) for spokes in (1, 2, 3, 4)]


class _Named:
    """Creates the registry of this test in a worker, as importing its module would, and looks up the name there."""

    def __init__(self, registry: Registry[Part]) -> None:
        self.builtin = dict(registry._builtin)

    def __call__(self, name: str) -> tuple[str, int]:
        Registry("part", self.builtin)
        return _known_in_a_worker(name)


def _ranks() -> dict[str, int]:
    """Return the rank of each layer in the import contract; parallel layers have the same rank."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    return {name.strip(): rank for rank, layer in enumerate(reversed(layers)) for name in layer.split("|")}


def _builtin_registries() -> dict[str, tuple[str, Registry[Any]]]:
    """Return every registry of the package by its kind, with the layer of the module that creates it."""
    found = {}
    for path in sorted(Path(shotproof.__path__[0]).rglob("*.py")):
        for name in re.findall(r"^(\w+)(?:: .*)? = \w*Registry\(", path.read_text(), re.MULTILINE):
            parts = path.relative_to(Path(shotproof.__path__[0])).with_suffix("").parts
            registry = getattr(importlib.import_module(".".join(["shotproof", *parts])), name)
            found[registry.kind] = (parts[0], registry)
    return found


def test_registered_names_point_down_the_layers_as_imports_do() -> None:
    ranks, registered = _ranks(), _builtin_registries()
    assert {"sampler", "method", "encoder", "objective"} <= registered.keys()
    for kind, (layer, registry) in registered.items():
        for name, path in registry._builtin.items():
            is_declared = path == declared.get(kind, {}).get(name)
            assert is_declared or ranks[path.split(".")[1]] <= ranks[layer], f"{kind} '{name}' points up to {path}"


def test_the_package_declares_only_what_a_registry_may_not_name_itself() -> None:
    ranks, registered = _ranks(), _builtin_registries()
    for kind, paths in declared.items():
        for path in paths.values():
            assert ranks[path.split(".")[1]] > ranks[registered[kind][0]], f"{path}: its registry may name it"
