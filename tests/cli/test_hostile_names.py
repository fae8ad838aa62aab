"""Names that files hold cannot reach a terminal or a workflow as anything but text, whichever command reads them."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.cli.app import main
from shotproof.core.printable import printable
from shotproof.features.features import Features
from tests.drawn_cards import make_card, random_axis, stress_axis

Shotproof = Callable[..., tuple[int, str]]
HOSTILE = "::error::\x1b[2J\u202e\x9b1A\n::set-output name=pwned::1\r##[group]"


@pytest.fixture
def shotproof(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shotproof:
    """Run a command in this process, check every line that it prints, and return exit status and standard output."""

    def run(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["shotproof", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        for line in (out + err).split("\n"):
            assert printable(line) == line, (arguments, line)
        return int(ended.value.code or 0), out + err

    return run


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a catalog, features and attributes full of hostile names."""
    monkeypatch.chdir(tmp_path)
    labels = [f"{HOSTILE}{label}" for label in "abcd" for _ in range(8)]
    items = [f"{HOSTILE}{row}" for row in range(len(labels))]
    columns = {"item": items, "path": items, "label": labels, "split": ["test"] * len(items)}
    Catalog(pa.table(columns)).write("catalog.parquet")
    Attributes.from_words({item: [f"{HOSTILE}{row % 3}"] for row, item in enumerate(items)}).write("words.parquet")
    values = np.random.default_rng(0).normal(size=(len(items), 3))
    Features.from_array(items, values, name=HOSTILE).write("features.parquet")
    return tmp_path


def test_commands_that_read_tables(shotproof: Shotproof, data: Path) -> None:
    tasks, shape = "tasks.parquet", ["--way", 3, "--shot", 1, "--query", 3, "--tasks", 4]
    printed = ""
    for expected, *command in [
        (1, "catalog", "catalog.parquet", "--check", "--way", 3, "--shot", 1, "--query", 30),
        (0, "sample", "catalog.parquet", "--sampler", "random", *shape, "-o", tasks),
        (0, "share", "verify", tasks, "catalog.parquet", "words.parquet"),
        (0, "evaluate", tasks, "features.parquet", "--method", "ncc", "-o", "results.parquet"),
        (0, "compare", "results.parquet"),
        (0, "compare", "results.parquet", "--latex"),
        (0, "compare", "results.parquet", tasks, "catalog.parquet", "-o", "report.html"),
        (0, "show", "results.parquet"),
        (0, "show", "features.parquet"),
        (0, "share", "leaderboard", ".", "-o", "board"),
        (0, "explain", "hardness", tasks, "words.parquet"),
    ]:
        status, out = shotproof(*command)
        assert status == expected, (command, out)
        printed += out
    assert printed.count("\\x1b[2J") > 10


def test_csv_and_json_keep_their_form(shotproof: Shotproof, data: Path) -> None:
    shape = ["--way", 3, "--shot", 1, "--query", 3, "--tasks", 4]
    shotproof("sample", "catalog.parquet", "--sampler", "random", *shape, "-o", "tasks.parquet")
    shotproof("evaluate", "tasks.parquet", "features.parquet", "--method", "ncc", "-o", "results.parquet")
    document = json.loads(shotproof("compare", "results.parquet", "--json")[1])
    assert document["estimates"][0]["encoder"] == HOSTILE
    rows = csv.DictReader(io.StringIO(shotproof("compare", "results.parquet", "--csv")[1]))
    assert next(rows)["encoder"] == printable(HOSTILE)
    attributes = csv.DictReader(
        io.StringIO(shotproof("explain", "hardness", "tasks.parquet", "words.parquet", "--csv")[1])
    )
    assert {row["attribute"] for row in attributes} == {printable(f"{HOSTILE}{number}") for number in range(3)}
    assert "\\x1b[2J" in shotproof("evaluate", "tasks.parquet", f"{HOSTILE}.parquet", "-o", "x.parquet")[1]


def test_a_card_adds_no_annotation_of_its_own(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    axis = replace(stress_axis(lost=30), name=f"fewstab,file=/etc/passwd::{HOSTILE}")
    card = replace(make_card(random_axis(), axis), name=HOSTILE, encoder=HOSTILE, method=HOSTILE, verdict=(HOSTILE,))
    card.write(data / "card.json")
    monkeypatch.setattr(sys, "argv", ["shotproof", "gate", "card.json", "--max-skill-lost", "10", "--github"])
    with pytest.raises(SystemExit):
        main()
    out, err = capsys.readouterr()
    orders = [line for line in (out + err).split("\n") if printable(line) != line]
    assert len(orders) == 1
    properties, _, message = orders[0].removeprefix("::error ").partition("::")
    assert properties.startswith("title=shotproof%3A fewstab%2Cfile=/etc/passwd")
    assert printable(message) == message
