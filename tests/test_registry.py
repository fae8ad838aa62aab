from __future__ import annotations

from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import pytest

from shotproof.errors import InputError, UnknownName
from shotproof.registry import Registry, check_options


def wheel(spokes: int = 3, *, colour: str = "red") -> tuple[int, str]:
    return spokes, colour


@pytest.fixture
def registry() -> Registry[Any]:
    return Registry("part", {"counter": "collections:Counter", "broken": "no_such_module:Thing"})


def test_names_are_sorted_and_import_nothing(registry: Registry[Any]) -> None:
    registry.register("a-wheel", wheel)
    assert registry.names() == ["a-wheel", "broken", "counter"]


def test_a_builtin_is_imported_when_it_is_used(registry: Registry[Any]) -> None:
    assert registry.factory("counter") is Counter
    assert registry.make("counter", "aab") == {"a": 2, "b": 1}


def test_one_can_be_added_and_taken_back(registry: Registry[Any]) -> None:
    registry.register("wheel", wheel)
    assert registry.make("wheel", 4, colour="blue") == (4, "blue")
    for name in ("wheel", "counter"):
        with pytest.raises(InputError, match="registered already"):
            registry.register(name, OrderedDict)
    registry.unregister("wheel")
    registry.unregister("never added")
    assert registry.names() == ["broken", "counter"]


def test_an_unknown_name_gets_the_nearest(registry: Registry[Any]) -> None:
    with pytest.raises(UnknownName, match="unknown part 'conter': did you mean 'counter'"):
        registry.make("conter")


def test_an_unknown_option_gets_the_nearest(registry: Registry[Any]) -> None:
    registry.register("wheel", wheel)
    with pytest.raises(InputError, match="part 'wheel' has no option 'color': did you mean 'colour'"):
        registry.make("wheel", color="blue")


def test_a_factory_that_takes_any_option_gets_any_option() -> None:
    check_options("dict", lambda **options: options, {"anything": 1})


def test_another_package_adds_one_by_an_entry_point(
    registry: Registry[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "gears_for_shotproof-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: gears-for-shotproof\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[shotproof.parts]\ngear = gears_for_shotproof:make_gear\n")
    (tmp_path / "gears_for_shotproof.py").write_text("def make_gear(teeth=8):\n    return 'gear', teeth\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "gear" in registry.names()
    assert registry.make("gear", teeth=12) == ("gear", 12)
    with pytest.raises(InputError, match="did you mean 'teeth'"):
        registry.make("gear", tooth=1)
