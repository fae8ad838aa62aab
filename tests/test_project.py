"""What the files around the code say of it: versions, Pythons, the oldest dependencies."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from shotproof.version import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
SOURCE = ROOT / "src" / "shotproof"
# Tests of more than one file of the source: what every component or command promises.
CONTRACTS = {
    "cli/test_early_checks.py": "every command",
    "cli/test_flags.py": "every flag of every command",
    "cli/test_hostile_names.py": "every command that prints names",
    "cli/test_interrupt.py": "every command that computes",
    "core/runtime/test_scripts.py": "every engine, from scripts, standard input and notebooks",
    "learners/adaptation/test_with_steps.py": "every adaptation",
    "learners/adaptation/test_without_steps.py": "every adaptation",
    "learners/heads/test_balanced.py": "every head that assumes balanced queries",
    "learners/test_fixture.py": "every method, by its numbers",
    "learners/test_options.py": "every method",
    "learners/test_plain_heads.py": "every head that benchmarks write plainly",
    "models/objectives/test_of_tasks.py": "every objective on tasks",
}
# Folders of tests of no one folder of the source.
BESIDE = {"benchmarks", "browser", "flows", "fuzzing", "package", "pipeline/runs", "reproduction", "scale"}
TOOLS = {"all", "dev", "browser", "stores", "docs"}  # extras whose versions are no promise to users
NOT_IN_MATRIX = {"spacy", "timm", "ray"}  # extras that the environment of the tests does not have


def _oldest(requirement: Requirement) -> str:
    """The lower bound as a constraint."""
    (bound,) = (each.version for each in requirement.specifier if each.operator == ">=")
    return f"{requirement.name}=={bound}"


def test_the_oldest_constraints_are_the_lower_bounds() -> None:
    extras = PROJECT["optional-dependencies"]
    listed = [
        *PROJECT["dependencies"],
        *(extra for name in extras.keys() - TOOLS - NOT_IN_MATRIX for extra in extras[name]),
    ]
    bounds = {_oldest(each) for each in map(Requirement, listed) if each.name != "shotproof"}
    constraints = (ROOT / "constraints-oldest.txt").read_text("utf-8").split()
    assert constraints == sorted(bounds, key=str.lower), "constraints-oldest.txt is to follow pyproject.toml"


def test_the_matrix_has_every_python_that_the_package_names() -> None:
    matrix = json.loads((ROOT / ".ci" / "matrix.json").read_text("utf-8"))
    named = {text.rpartition(" ")[2] for text in PROJECT["classifiers"] if ":: Python ::" in text}
    assert {each["python"] for each in matrix} == named
    assert all(SpecifierSet(PROJECT["requires-python"]).contains(python) for python in named)
    oldest = min(named, key=lambda text: int(text.partition(".")[2]))
    assert {"python": oldest, "constraints": "constraints-oldest.txt"} in matrix
    assert all((ROOT / each["constraints"]).is_file() for each in matrix)


def test_the_citation_has_the_version() -> None:
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    assert cited
    assert cited[1] == __version__


def test_every_commit_is_held_to_what_make_lint_checks() -> None:
    recipe = (ROOT / "Makefile").read_text("utf-8").partition("\nlint: ")[2].partition("\n\n")[0]
    tools = set(re.findall(r"\$\(BIN\)/(ruff \w+|[\w-]+)", recipe))
    hooks = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    assert tools
    assert {tool for tool in tools if f".venv/bin/{tool}" in hooks} == tools


def test_tests_mirror_the_source() -> None:
    folders = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")} - {Path()}
    assert {folder.as_posix() for folder in folders if not (SOURCE / folder).is_dir()} == BESIDE
    for folder in sorted(folders):
        for test in (ROOT / "tests" / folder).glob("test_*.py"):
            of_file = SOURCE / folder / test.name.removeprefix("test_")
            name = test.relative_to(ROOT / "tests").as_posix()
            beside = folder.as_posix() in BESIDE or name in CONTRACTS
            assert of_file.is_file() or beside, f"{name} tests no file of the source: {of_file} is not there"
    assert [name for name in CONTRACTS if not (ROOT / "tests" / name).is_file()] == []
