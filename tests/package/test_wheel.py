"""The package as a user gets it: built, installed where nothing else is, and run from there."""

from __future__ import annotations

import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from shotproof.worlds.shapes import ShapesWorld
from tests.package.conftest import Built
from tests.package.environments import ROOT, Environment, Metadata, link_packages

pytestmark = pytest.mark.package

PACKAGE = ROOT / "src" / "shotproof"


def _files_of_wheel(wheel: Path) -> list[str]:
    return sorted(zipfile.ZipFile(wheel).namelist())


def test_the_wheel_has_every_file_of_the_package_and_no_other(built: Built) -> None:
    shipped = [name for name in _files_of_wheel(built.wheel) if ".dist-info/" not in name]
    there = [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert shipped == sorted(path.relative_to(PACKAGE.parent).as_posix() for path in there)
    assert any(name.endswith(".html") for name in shipped)


def test_the_wheel_of_the_sdist_is_that_of_the_tree(built: Built) -> None:
    assert _files_of_wheel(built.wheel) == _files_of_wheel(built.wheel_of_tree)
    with tarfile.open(built.sdist) as archive:
        parts = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md"} <= parts
    assert not [name for name in parts if name.startswith("tests")]  # a few of them would be of no use


def test_nothing_of_the_source_tree_can_be_imported(core: Environment, tmp_path: Path) -> None:
    told = "import json, sys, shotproof; print(json.dumps([shotproof.__file__, *sys.path]))"
    places = json.loads(core.run("-c", told, folder=tmp_path).stdout)
    assert places[0].startswith(str(core.python.parents[1]))
    assert not [place for place in places if Path(place or tmp_path).resolve().is_relative_to(ROOT / "src")]
    assert core.run("-c", "import pandas", folder=tmp_path).returncode == 1  # only what the package asks for is there


def test_the_demo_runs(core: Environment, tmp_path: Path) -> None:
    done = core.run("-m", "shotproof", "demo", "--no-progress", folder=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "shotproof-demo" / "report.html").stat().st_size > 10_000


def test_schemas_and_mappings_come_along(core: Environment, tmp_path: Path) -> None:
    schema = core.run("-m", "shotproof", "show", "experiment", folder=tmp_path)
    assert json.loads(schema.stdout)["$schema"]
    mapping = core.run("-c", "import shotproof as sp; print(sp.sounds.read_mapping('esc50'))", folder=tmp_path)
    assert mapping.returncode == 0, mapping.stderr


def test_what_the_readme_promises_of_a_folder(python: Path, metadata: Metadata, tmp_path: Path) -> None:
    assert "pip install 'shotproof[lite]'\n    shotproof run birds/\n" in (ROOT / "README.md").read_text("utf-8")
    lite = Environment(python, link_packages(tmp_path / "packages", metadata.required("lite") + metadata.required()))
    ShapesWorld(classes=6, items=30, size=32).write(tmp_path / "birds")
    done = lite.run("-m", "shotproof", "run", "birds/", "--no-progress", folder=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "ncc on lite0" in done.stdout
    assert (tmp_path / "birds-results" / "experiment.toml").is_file()
    assert (tmp_path / "birds-results" / "report.html").stat().st_size > 10_000
