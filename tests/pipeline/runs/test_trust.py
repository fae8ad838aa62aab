"""Nothing that somebody else's experiment names is imported, and no server asked, before the user has said so."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from shotproof.cli.app import main
from shotproof.cli.run import with_trust
from shotproof.core.errors import InputError
from shotproof.core.trust import NotTrusted, Trust
from shotproof.models.objective import objectives
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.study import run
from shotproof.worlds.shapes import ShapesWorld
from tests.models.objectives.untrained_models import model_of
from tests.small_networks import BACKBONE

pytestmark = pytest.mark.strangers

EXPERIMENT = """
[catalog]
root = "world"
[attributes]
detectors = ["photometric"]
[features]
encoders = ["pixels"]
[tasks]
way = 2
shots = [1]
query = 2
samplers = ["random"]
[evaluate]
methods = ["ncc"]
[runtime]
engine = "local"
"""
# Whoever imports it leaves a file behind.
CODE = """
import pathlib
pathlib.Path(__file__).with_name("imported").touch()

def head(support, labels, query):
    return query @ support.T
"""
KINDS = ("layout", "detector", "encoder", "transform", "sampler", "method", "engine")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an experiment, and code: a file, a module, and a package with an entry point of every kind."""
    ShapesWorld(classes=3, items=4, size=16).write(tmp_path / "world")
    (tmp_path / "alien.py").write_text(CODE)
    package = tmp_path / "stranger-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    points = "".join(f"[shotproof.{kind}s]\nstrange = alien:head\n" for kind in KINDS)
    (package / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "alien", None)
    monkeypatch.delitem(sys.modules, "alien")
    return tmp_path


def experiment(folder: Path, old: str, new: str) -> Path:
    assert old in EXPERIMENT
    file = folder / "experiment.toml"
    file.write_text(EXPERIMENT.replace(old, new))
    return file


NAMED = [
    ('"ncc"', '"alien.py:head"', r"method 'alien.py:head' runs the code of .*alien.py \(digest [0-9a-f]{16}\)"),
    ('"ncc"', '" alien.py:head() "', "runs the code of .*alien.py"),
    (
        '"ncc"',
        '"python:alien:head"',
        "method 'python:alien:head' runs the code of the module alien",
    ),
    ('"ncc"', '{ name = "python:alien:head" }', "runs the code of the module alien"),
    ('"ncc"', '"python:./alien.py:head"', "runs the code of .*alien.py"),
    ('root = "world"', 'root = "world"\nlayout = "strange"', "layout 'strange' runs the code of the package stranger"),
    ('"photometric"', '"strange(a=1)"', "detector 'strange' runs the code of the package stranger"),
    ('"pixels"', '"strange:file"', "encoder 'strange' runs the code of the package stranger"),
    ('["pixels"]', '["pixels"]\ntransforms = ["strange"]', "transform 'strange' runs the code of the package stranger"),
    ('"random"', '{ name = "strange" }', "sampler 'strange' runs the code of the package stranger"),
    ('"ncc"', '"strange"', "method 'strange' runs the code of the package stranger"),
    ('"local"', '"strange"', "engine 'strange' runs the code of the package stranger"),
    ('"local"', '"ray://there.example:10001"', "engine 'ray://there.example:10001' sends items and your environment"),
    (
        '"ncc"',
        "\"chat(model='m', url='https://there.example/v1')\"",
        r"sends items, .*\$OPENAI_API_KEY, to",
    ),
    ('"ncc"', "\"chat(model='m', url='http://localhost@there.example')\"", r"to http://there\.example"),
    ('"ncc"', "\"chat(model='m', api_key_variable='HOME')\"", r"sends \$HOME .* key"),
    ('"photometric"', "\"endpoint(model='m', url='https://there.example')\"", "sends items"),
]


@pytest.mark.parametrize(("old", "new", "expected"), NAMED, ids=[new for _, new, _ in NAMED])
def test_nothing_that_a_file_names_is_imported_or_asked_unless_it_is_trusted(
    folder: Path, old: str, new: str, expected: str
) -> None:
    file = experiment(folder, old, new)
    with pytest.raises(NotTrusted, match=expected):
        run(file, dry_run=True)
    with pytest.raises(NotTrusted, match=expected):
        Experiment.read(file)
    assert not (folder / "imported").exists()
    assert "alien" not in sys.modules


def refused(file: Path, trust: Trust = False) -> str:
    """What consent is asked for."""
    with pytest.raises(NotTrusted) as error:
        Experiment.read(file, trust)
    return error.value.description


@pytest.mark.parametrize("name", ["python:alien:head", "alien.py:head"])
@pytest.mark.parametrize("everything", [True, False])
def test_what_is_trusted_is_imported(folder: Path, name: str, everything: bool) -> None:
    file = experiment(folder, '"ncc"', f'"{name}"')
    trust = everything or [refused(file)]
    assert not (folder / "imported").exists()
    assert Experiment.read(file, trust).methods
    assert (folder / "imported").exists()


@pytest.mark.parametrize("name", ["python:alien:head", "alien.py:head"])
def test_consent_is_to_the_code_as_it_is_and_to_the_options(folder: Path, name: str) -> None:
    file = experiment(folder, '"ncc"', f'"{name}"')
    agreed = [refused(file)]
    experiment(folder, '"ncc"', f'"{name}(k=3)"')
    assert f"{name}(k=3)" in refused(file, agreed)
    experiment(folder, '"ncc"', f'"{name}"')
    (folder / "alien.py").write_text(CODE + "\n# changed\n")
    assert refused(file, agreed) != agreed[0]
    assert not (folder / "imported").exists()


def test_a_class_that_is_no_method_is_not_made(folder: Path) -> None:
    (folder / "alien.py").write_text(
        f"class Shell:\n    def __init__(self):\n        open({str(folder / 'made')!r}, 'w')\n"
    )
    with pytest.raises(InputError, match=r"fit and predict, .* found the class Shell"):
        Experiment.read(experiment(folder, '"ncc"', '"alien.py:Shell"'), True)
    assert not (folder / "made").exists()


def test_a_server_on_this_machine_needs_no_trust(folder: Path) -> None:
    file = experiment(folder, '"ncc"', "\"chat(model='m', url='http://localhost:8000/v1')\"")
    assert Experiment.read(file).methods


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_asked_for_each_and_no_is_the_default(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = experiment(folder, '"ncc"', '"python:alien:head", "alien.py:head"')
    monkeypatch.setattr(sys, "stdin", Terminal("\n"))
    with pytest.raises(NotTrusted):
        with_trust(file, False, lambda trust: Experiment.read(file, trust))
    assert not (folder / "imported").exists()
    monkeypatch.setattr(sys, "stdin", Terminal("y\ny\n"))
    assert len(with_trust(file, False, lambda trust: Experiment.read(file, trust)).methods) == 2
    told = capsys.readouterr()
    asked = told.out + told.err
    assert asked.count("[y/N]") == 3
    assert "runs the code of the module alien" in asked


def test_without_a_terminal_a_command_ends_with_one_line_that_names_the_code(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = experiment(folder, '"ncc"', '"alien.py:head"')
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr(sys, "argv", ["shotproof", "run", str(file), "--dry-run"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {file}, [evaluate], methods: method 'alien.py:head' runs the code of {folder}")
    assert not (folder / "imported").exists()
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--trust"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert (folder / "imported").exists()


def test_a_file_of_a_model_that_names_a_backbone_of_another_package_needs_trust(folder: Path) -> None:
    entries = folder / "stranger-1.0.dist-info" / "entry_points.txt"
    entries.write_text("[shotproof.backbones]\nstrange = alien:head\n")
    model = folder / "first.model"
    model_of(objectives.make("protonet"), seed=0).write(model)
    with safe_open(model, "pt") as opened:
        told = {key: value.replace(BACKBONE, "strange") for key, value in opened.metadata().items()}
    save_file(load_file(model), model, told)
    file = experiment(folder, '["ncc"]', '["finetune(steps=1)"]\nmodel = "first.model"')
    with pytest.raises(NotTrusted, match="backbone 'strange' runs the code of the package stranger"):
        run(file)
    assert not (folder / "imported").exists()
