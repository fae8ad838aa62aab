"""The Python of the documentation runs as it stands there, and its first lines make the full claim."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import matplotlib as mpl
import pytest
from tools.option_tables import DOCS
from typer.testing import CliRunner

import shotproof as sp
from shotproof.cli.app import app
from shotproof.pipeline.components import all_registries
from tests.page_files import FILES, PageFiles

README = DOCS.parent / "README.md"
TEXTS = [README, DOCS.parent / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
PAGES = [path for path in TEXTS if "```python" in path.read_text(encoding="utf-8")]
_BLOCK = re.compile(r"(?:<!-- not run: (.+?) -->\n)?```python\n(.*?)```", re.DOTALL)
SKLEARN = "sklearn:sklearn.svm."
SLOW_PAGES = ("bundle", "card", "context-shift", "python", "train")  # of 8 to 18 seconds
# What this machine does not have.
NOT_RUN = {("cluster", "needs a Ray cluster"), ("in-context", "needs a chat server")}


def code_of(page: Path) -> list[str]:
    """Return the blocks of a page that are run."""
    blocks = _BLOCK.findall(page.read_text(encoding="utf-8"))
    return [textwrap.dedent(code) for reason, code in blocks if not reason]


@pytest.fixture(scope="session")
def page_files(tmp_path_factory: pytest.TempPathFactory) -> PageFiles:
    return PageFiles(tmp_path_factory.mktemp("pages"))


@pytest.fixture(autouse=True)
def few_repetitions(page_files: PageFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """Re-evaluate on few halves and shuffles, encode what several pages show once, and draw figures nowhere."""
    for name, value in {"HALVINGS": 4, "FEWEST_HALVINGS": 4, "TASKS_PER_HALF": 10}.items():
        monkeypatch.setattr(f"shotproof.analysis.reevaluation.halvings.{name}", value)
    for name, value in {"SHUFFLES": 10, "FEWEST_SHUFFLES": 10, "TASKS_PER_SHUFFLE": 10}.items():
        monkeypatch.setattr(f"shotproof.analysis.reevaluation.shuffled_words.{name}", value)
    monkeypatch.setenv("SHOTPROOF_CACHE", str(page_files.folder / "cache"))
    mpl.use("agg")


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """Take back what a page registers."""
    before = {kind: set(registry) for kind, registry in all_registries().items()}
    yield
    for kind, registry in all_registries().items():
        for name in set(registry) - before[kind]:
            registry.unregister(name)


def run_page(page: Path, page_files: PageFiles, folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Run the Python of a page in a folder that has the files that it names, and return what it has defined."""
    blocks = code_of(page)
    code = "\n".join(blocks)
    named = [name for name in FILES if re.search(rf'"{re.escape(name)}[/"]', code)]
    named += [f"{name}.parquet" for name in ("random", "hard", "attributes") if f'"{name}"' in code]
    page_files.place(dict.fromkeys(named), page.stem, folder)
    monkeypatch.chdir(folder)
    module = ModuleType(page.stem)
    monkeypatch.setitem(sys.modules, page.stem, module)
    for block in blocks:
        exec(compile(block, page.name, "exec"), vars(module))
    return module


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=[pytest.mark.slow] if page.stem in SLOW_PAGES else [])
        for page in PAGES
        if code_of(page) not in ([], code_of(README))
    ],
)
def test_the_python_of_a_page_runs(
    page: Path, page_files: PageFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_page(page, page_files, tmp_path, monkeypatch)


@pytest.mark.slow
def test_the_first_lines_make_the_full_claim_as_the_command_does(
    page_files: PageFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = run_page(README, page_files, tmp_path, monkeypatch).study
    changing = re.findall(r"`(study\.change\(.+?\))`", README.read_text("utf-8"))
    assert len(changing) == 1
    comparison = study.compare()
    assert comparison.first_interval_name == "images"
    assert not comparison.refused
    table = comparison.to_pandas()
    excess = table[(table["quantity"] == "excess") & (table["interval"] == "images")]
    assert set(excess["method"]) == {"ncc", "SVC(C=10)"}
    assert "placebo" in " ".join(study.verdict())
    assert Path("report.html").is_file()

    methods = ["--method", "ncc", "--method", f"{SKLEARN}SVC(C=10)"]
    assert CliRunner().invoke(app, ["run", "birds", "--encoder", "lite0", *methods]).exit_code == 0
    run = sp.read("birds-results")
    assert isinstance(run, sp.Study)
    assert [tasks.digest for tasks in run.tasks] == [tasks.digest for tasks in study.tasks]
    assert [sentence.replace(SKLEARN, "") for sentence in run.verdict()] == study.verdict()
    assert len(eval(changing[0], {"study": study}).tasks) > len(run.tasks)


def test_what_is_not_run_is_known() -> None:
    marked = {(page.stem, reason) for page in PAGES for reason, _ in _BLOCK.findall(page.read_text("utf-8")) if reason}
    assert marked == NOT_RUN
