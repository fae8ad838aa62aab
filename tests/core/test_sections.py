"""Tables of a file as records of options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import jsonschema
import pytest

from shotproof.core.errors import InputError
from shotproof.core.options import Component, option
from shotproof.core.registry import Registry
from shotproof.core.sections import Entry, Place, Section


class Snack(Component):
    kind: ClassVar[str] = "snack"


@dataclass(frozen=True)
class Toast(Snack):
    slices: int = option(1, "how many", least=1, most=9)
    jam: Path | None = option(None, "from which jar", path=True)


SNACKS: Registry[Snack] = Registry("snack", {"toast": f"{__name__}:Toast"})


@dataclass(frozen=True)
class Served(Entry):
    kind: ClassVar[str] = "snack"

    snack: Snack = option(help="what")
    guests: tuple[str, ...] | None = option(None, "to whom", distinct=True, single=True, also=("guest",))


@dataclass(frozen=True)
class Music(Section):
    volume: int = option(help="how loud", least=0, most=10)


@dataclass(frozen=True)
class Party(Section):
    menu: Path | None = option(None, "its file")
    snacks: tuple[Served, ...] | None = option(None, "what there is", distinct=True)
    tables: Mapping[str, tuple[Snack, ...]] | None = option(None, "by room")
    music: Music | None = option(None, "what is played")


WHOLE: dict[str, Any] = {
    "menu": "menu.txt",
    "snacks": ["toast(slices=2)", {"name": "toast", "slices": 3, "guests": "Ann"}],
    "tables": {"hall": ["toast"]},
    "music": {"volume": 3},
}


def test_spellings_become_components_and_paths_start_from_the_folder(tmp_path: Path) -> None:
    (tmp_path / "jar").touch()
    table = {**WHOLE, "tables": {"hall": [{"name": "toast", "jam": "jar"}]}}
    party = Party.read(table, Place(tmp_path, ("party",)))
    assert party.menu == tmp_path / "menu.txt"
    assert party.snacks == (Served(Toast(2)), Served(Toast(3), ("Ann",)))
    assert party.tables == {"hall": (Toast(jam=tmp_path / "jar"),)}
    assert party.music == Music(3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"menue": "a"}, "[party]: unknown key 'menue': did you mean 'menu'"),
        ({"menu": 3}, "[party], menu: expected a path, found 3"),
        ({"music": {}}, "[party.music]: the key 'volume' is missing: how loud"),
        ({"music": {"volume": 11}}, "[party.music], volume: expected a whole number from 0 to 10, found 11"),
        ({"music": 3}, "[party.music]: expected a table, found 3"),
        ({"snacks": []}, "[party], snacks: expected a list of snacks, at least one, found []"),
        ({"snacks": ["toast", "toast"]}, "[party], snacks: expected each once, found 'toast' twice"),
        ({"snacks": ["tost"]}, "[party], snacks: unknown snack 'tost': did you mean 'toast'"),
        ({"snacks": [3]}, '[party], snacks: expected "NAME(option=value)" or { name = "NAME" }, found 3'),
        (
            {"snacks": [{"name": "toast", "guest": "Ann"}]},
            "[party], snacks: unknown key 'guest': did you mean 'guests'",
        ),
        ({"snacks": [{"name": "toast", "guests": 3}]}, "[party], snack 'toast', guests: expected a list of text"),
        ({"tables": {"hall": ["tost"]}}, "[party], tables, hall: unknown snack 'tost'"),
    ],
)
def test_what_cannot_be_is_told_with_its_place(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Party.read({**WHOLE, **changes}, Place(tmp_path, ("party",)))
    assert str(caught.value).startswith(f", {message}")


def test_the_schema_admits_what_is_read() -> None:
    schema = Party.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(WHOLE, schema)
    for wrong in (
        {"menue": "a"},
        {"music": {}},
        {"snacks": []},
        {"snacks": [{"name": "toast", "guest": "Ann"}]},
        {"tables": {"hall": ["tost"]}},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**WHOLE, **wrong}, schema)
