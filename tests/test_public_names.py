"""The public names are listed in one place, exist, and do not drift; importing the package stays light."""

import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import shotproof
from tests.conftest import Data


def test_every_public_name_can_be_imported_and_is_documented() -> None:
    for name in shotproof.__all__:
        value = getattr(shotproof, name)
        if isinstance(value, type | types.FunctionType):
            assert value.__doc__, name


def test_public_functions_say_what_they_take_and_give_with_an_example() -> None:
    for name in shotproof.__all__:
        value = getattr(shotproof, name)
        if isinstance(value, types.FunctionType):
            told = value.__doc__ or ""
            lacking = [part for part in ("Args:", "Returns:", "Example:", ">>> ") if part not in told]
            assert not lacking, (name, lacking)


def test_names_for_type_checkers_are_the_same() -> None:
    source = Path(str(shotproof.__file__)).read_text()
    listed = set(re.findall(r"import (\w+) as \1\n", source))
    assert listed == set(shotproof.__all__) - {"__version__"}


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
modules = [name for name in sp.__all__ if isinstance(getattr(sp, name), types.ModuleType)]
assert not modules, modules
beside = {module.name for module in pkgutil.iter_modules(sp.__path__)}
assert not beside & set(sp.__all__), beside & set(sp.__all__)
from shotproof.learners import method
assert list(method.methods) == list(sp.methods)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


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
