"""The package, built once."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.package.environments import ROOT, Environment, Metadata, link_packages, make_python

SOURCES = ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md", "src")


@dataclass(frozen=True)
class Built:
    """A source distribution, the wheel that was built from it, and the wheel that was built from the tree."""

    sdist: Path
    wheel: Path
    wheel_of_tree: Path


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """What `python -m build` makes of a copy of the tree."""
    tree = tmp_path_factory.mktemp("tree")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(ROOT / name, tree)
    build = [sys.executable, "-m", "build", "--no-isolation", str(tree)]
    subprocess.run(build, check=True, capture_output=True)
    subprocess.run([*build, "--wheel", "--outdir", str(tree / "direct")], check=True, capture_output=True)
    (sdist,), (wheel,) = (list((tree / "dist").glob(pattern)) for pattern in ("*.tar.gz", "*.whl"))
    (direct,) = (tree / "direct").glob("*.whl")
    return Built(sdist, wheel, direct)


@pytest.fixture(scope="session")
def metadata(built: Built) -> Metadata:
    return Metadata.of(built.wheel)


@pytest.fixture(scope="session")
def python(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with nothing but the wheel."""
    return make_python(tmp_path_factory.mktemp("environment") / "python", built.wheel)


@pytest.fixture(scope="session")
def core(python: Path, metadata: Metadata, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """`pip install shotproof`."""
    return Environment(python, link_packages(tmp_path_factory.mktemp("core") / "packages", metadata.required()))
