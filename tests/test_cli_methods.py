from __future__ import annotations

import json

import typer
from typer.testing import CliRunner

from shotproof.cli.methods import methods as verb
from shotproof.methods.method import methods

app = typer.Typer()
app.command()(verb)


def test_every_method_has_a_line() -> None:
    printed = CliRunner().invoke(app).stdout.splitlines()
    for name in methods.names():
        assert any(line.startswith(f"{name} ") for line in printed)
    assert any("balanced" in line for line in printed if line.startswith("pt-map"))


def test_one_method_is_explained_with_its_options_and_its_paper() -> None:
    printed = CliRunner().invoke(app, ["pt-map"]).stdout
    assert '--method "pt-map(steps=20, rate=0.2, ' in printed
    assert "Hu, Gripon, Pateux" in printed
    assert "--method ncc\n" in CliRunner().invoke(app, ["ncc"]).stdout
    assert "did you mean 'pt-map'?" in str(CliRunner().invoke(app, ["ptmap"]).exception)


def test_json_has_what_the_table_has() -> None:
    listed = {row["method"]: row for row in json.loads(CliRunner().invoke(app, ["--json"]).stdout)["methods"]}
    assert sorted(listed) == methods.names()
    assert all(row["about"] for row in listed.values())
    assert listed["alpha-tim"]["options"]["weights"] == [1.0, 1.0, 1.0]
    assert (listed["tim"]["balanced"], listed["alpha-tim"]["balanced"]) == (True, False)
    assert (listed["knn"]["family"], listed["bpa"]["family"]) == ("inductive", "transductive")


def test_a_method_that_needs_an_option_is_listed_too() -> None:
    class Named(methods.factory("ncc")):  # type: ignore[misc]
        def __init__(self, which: str) -> None:
            self.which = which

    methods.register("named", Named)
    try:
        listed = json.loads(CliRunner().invoke(app, ["--json"]).stdout)["methods"]
    finally:
        methods.unregister("named")
    assert next(row for row in listed if row["method"] == "named")["options"] == {"which": "..."}
