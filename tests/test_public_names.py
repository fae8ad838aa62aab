"""The public names are listed in one place, exist, and do not drift; importing the package stays light."""

import inspect
import operator
import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from sklearn.svm import SVC

import shotproof
from shotproof.cli import app
from shotproof.core.trust import NotTrusted, no_trust
from shotproof.features.encoders.staged import encode_stages
from shotproof.learners.method import make_method
from tests.conftest import Data

COMMANDS = Path(__file__).parents[1] / "docs" / "reference" / "commands.md"
PACKAGES = [shotproof, *(getattr(shotproof, name) for name in shotproof.MODULES)]
NAMES = [(package, name) for package in PACKAGES for name in package.HOMES]
every_name = pytest.mark.parametrize(
    ("package", "name"), NAMES, ids=[f"{package.__name__}.{name}" for package, name in NAMES]
)


def test_there_are_few_names() -> None:
    assert len(shotproof.HOMES) <= 54, "what few people need goes into a module: sp.worlds, sp.analysis, ..."
    everything = [name for _, name in NAMES]
    assert len(everything) == len(set(everything)), "a name is in one place"


@every_name
def test_a_name_can_be_imported_and_is_documented(package: types.ModuleType, name: str) -> None:
    value = getattr(package, name)
    if isinstance(value, type | types.FunctionType):
        assert value.__doc__


@every_name
def test_a_function_says_what_it_takes_and_gives_with_an_example(package: types.ModuleType, name: str) -> None:
    value = getattr(package, name)
    if isinstance(value, types.FunctionType):
        args = ["Args:"] if inspect.signature(value).parameters else []
        assert [part for part in (*args, "Returns:", "Example:", ">>> ") if part not in (value.__doc__ or "")] == []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_names_for_type_checkers_are_the_same(package: types.ModuleType) -> None:
    listed = set(re.findall(r"import (\w+) as \1\n", Path(str(package.__file__)).read_text()))
    assert listed == set(package.__all__)


def test_public_names_stay_what_they_are_whatever_is_imported() -> None:
    code = """
import importlib, pkgutil, types
import shotproof as sp
import shotproof.learners.heads.inductive.centroids as ncc
assert isinstance(ncc, types.ModuleType)
for module in pkgutil.walk_packages(sp.__path__, "shotproof."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
assert "ncc" in sp.methods and "hardest" in sp.samplers
for package in (sp, *(getattr(sp, name) for name in sp.MODULES)):
    modules = [name for name in package.HOMES if isinstance(getattr(package, name), types.ModuleType)]
    assert not modules, modules
    beside = {module.name for module in pkgutil.iter_modules(package.__path__)} & set(package.HOMES)
    assert not beside, f"modules have names of their own: {beside}"
from shotproof.learners import method
assert list(method.methods) == list(sp.methods)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_of_modules_are_trusted_as_those_of_the_package(tmp_path: Path) -> None:
    (tmp_path / "heads.py").write_text("def nearest(support, labels, query):\n    return support[:0]\n")
    with no_trust():
        with pytest.raises(NotTrusted):
            make_method(f"{tmp_path}/heads.py:nearest")
        assert shotproof.methods.make(f"{tmp_path}/heads.py:nearest").name.endswith("nearest")
    assert shotproof.analysis.encode_stages.__wrapped__ is encode_stages


def test_what_evaluate_takes_as_a_method_the_registry_makes() -> None:
    assert shotproof.methods.make("sklearn:sklearn.svm.SVC(C=10)").spelling == "sklearn:sklearn.svm.SVC(C=10)"
    assert shotproof.methods.make(SVC(C=10)).spelling == "SVC(C=10)"
    assert shotproof.methods.make("ridge(penalty=2)").spelling == "ridge(penalty=2)"


def test_every_function_of_the_table_of_commands_is_there() -> None:
    rows = re.findall(r"^\| `([\w ]+)` \| [^|]* \|(.*)\|$", COMMANDS.read_text(encoding="utf-8"), re.MULTILINE)
    assert {command for command, _ in rows} == set(app.COMMANDS)
    functions = {function for _, cell in rows for function in re.findall(r"`sp\.([\w.]+)`", cell)}
    for function in functions:
        assert callable(operator.attrgetter(function)(shotproof)), function
    assert [command for command, cell in rows if "`sp." not in cell] == ["demo"]
    public = {name for name in shotproof.HOMES if isinstance(getattr(shotproof, name), types.FunctionType)}
    assert public - {"option", "runtime"} <= functions, "a function that has no command"


def test_errors_about_input_are_value_errors() -> None:
    with pytest.raises(ValueError, match="unknown sampler 'randm'"):
        shotproof.samplers.make("randm")


def test_items_are_plain_strings_and_everything_shows_itself(data: Data) -> None:
    catalog, attributes = data
    assert all(type(item) is str for item in catalog.items)
    features = shotproof.Features.from_array(
        catalog.items, np.random.default_rng(0).normal(size=(len(catalog), 8)), name="mine"
    )
    tasks = shotproof.sample(catalog, "random", shot=2, query=3, tasks=10)
    results = shotproof.evaluate(tasks, features, "ncc")
    for thing, told in (
        (catalog, "320 items of 8 classes"),
        (attributes, "12 words of 320 items"),
        (features, "mine, 320 items of 8 numbers"),
        (tasks, "10 random tasks, 5-way 2-shot"),
        (results, "ncc on mine, random tasks"),
    ):
        assert told in repr(thing)
        assert told in thing._repr_html_()
        again = type(thing).from_pandas(thing.to_pandas())
        assert again.digest == thing.digest


def test_importing_is_light() -> None:
    code = "import sys, shotproof, shotproof.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "typer" in loaded
    assert not {"torch", "scipy", "pyarrow", "numpy", "PIL"} & set(loaded)
