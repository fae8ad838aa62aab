from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from shotproof.core.errors import InputError
from shotproof.learners.method import Method, make_method
from tests.drawn_tasks import draw

HEADS = """
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from shotproof import Method
from shotproof.core.options import option

from beside import power  # a file in the same folder


class Head:
    def __init__(self, epochs=3, rate=0.1):
        if epochs < 1:
            raise ValueError("epochs must be positive")
        self.epochs = epochs

    def fit(self, X, y):
        self.means = np.stack([X[y == c].mean(0) for c in range(y.max() + 1)])

    def predict(self, X):
        return (np.abs(X[:, None] - self.means) ** self.epochs).sum(-1).argmin(1)


class Needy:
    def __init__(self, size):
        self.size = size


def nearest(support, labels, query, order=2):
    means = torch.stack([support[labels == c].mean(0) for c in range(int(labels.max()) + 1)])
    return -power(torch.cdist(query, means), order)


nearest.family = "inductive"
made = Head(epochs=1)
number = 3


@dataclass(frozen=True)
class Batched(Method):
    shift: float = option(0.0, "added to all scores", least=0)

    def scores(self, support, labels, query, way):
        return torch.zeros(*query.shape[:2], way) + self.shift
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with two files of one's own."""
    (tmp_path / "my_heads.py").write_text(HEADS)
    (tmp_path / "beside.py").write_text("def power(x, order):\n    return x**order\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "beside", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "spelling", "name"),
    [
        ("my_heads.py:Head", "my_heads.py:Head", "my_heads.py:Head"),
        (" ./my_heads.py:Head( epochs = 2 ) ", "my_heads.py:Head(epochs=2)", "my_heads.py:Head"),
        ("python:my_heads.py:Head(epochs=2)", "my_heads.py:Head(epochs=2)", "my_heads.py:Head"),
        ("my_heads.py:Head()", "my_heads.py:Head", "my_heads.py:Head"),
        ("my_heads.py:nearest", "my_heads.py:nearest", "my_heads.py:nearest"),
        ("my_heads.py:nearest(order=1)", "my_heads.py:nearest(order=1)", "my_heads.py:nearest"),
        ("my_heads.py:made", "my_heads.py:made", "my_heads.py:made"),
        ("my_heads.py:Batched(shift=1)", "my_heads.py:Batched(shift=1)", "my_heads.py:Batched"),
    ],
)
def test_code_in_a_file_is_a_method(folder: Path, typed: str, spelling: str, name: str) -> None:
    method = make_method(typed)
    assert (method.spelling, method.name) == (spelling, name)
    assert make_method(method.spelling) == method
    assert method.scores(*draw(tasks=2)).shape == (2, 9, 4)
    copy = pickle.loads(pickle.dumps(method))
    assert copy == method
    assert copy.spelling == spelling
    assert len(method.parameters()["file_digest"]) == 16


def test_options_reach_the_code(folder: Path) -> None:
    batch = draw(tasks=2)
    nearest = make_method("my_heads.py:nearest").scores(*batch)
    torch.testing.assert_close(nearest, -make_method("my_heads.py:nearest(order=1)").scores(*batch).square())
    torch.testing.assert_close(nearest, make_method("ncc").scores(*batch))
    table = make_method({"name": "my_heads.py:Head", "epochs": 2})
    assert table == make_method("my_heads.py:Head(epochs=2)")
    assert torch.equal(table.scores(*batch).argmax(-1), nearest.argmax(-1))
    assert table.parameters()["epochs"] == 2
    assert make_method("my_heads.py:nearest(order=1)").family == "inductive"
    assert make_method("bpa(head='my_heads.py:Head')").in_order


def test_code_in_a_module_is_a_method(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    method = make_method("python:my_heads:Head(epochs=2)")
    assert method.spelling == "python:my_heads:Head(epochs=2)"
    assert make_method(method.spelling) == method
    assert pickle.loads(pickle.dumps(method)) == method
    sys.modules.pop("my_heads")


def test_a_file_is_looked_for_in_the_folder_that_is_given(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    method = make_method("my_heads.py:Head", folder=folder)
    assert method.spelling == "my_heads.py:Head"
    with pytest.raises(InputError, match="there is no file"):
        make_method("my_heads.py:Head")


def test_a_file_that_has_changed_is_read_again(folder: Path) -> None:
    first = make_method("my_heads.py:made")
    assert make_method("my_heads.py:made").classifier is first.classifier  # type: ignore[attr-defined]
    (folder / "my_heads.py").write_text(HEADS.replace("made = Head(epochs=1)", "made = Head(epochs=5)"))
    second = make_method("my_heads.py:made")
    assert second.classifier.epochs == 5  # type: ignore[attr-defined]
    assert second != first
    assert second.parameters()["file_digest"] != first.parameters()["file_digest"]


def test_another_process_in_another_folder_makes_it_again(folder: Path) -> None:
    batch = draw(tasks=2)
    names = ["my_heads.py:Head(epochs=2)", "my_heads.py:nearest(order=1)", "my_heads.py:Batched(shift=2)"]
    made = [make_method(name) for name in names]
    (folder / "sent").write_bytes(pickle.dumps((made, batch[:])))
    script = (
        "import pickle, sys; made, batch = pickle.load(open(sys.argv[1], 'rb')); "
        "pickle.dump([(one.spelling, one.scores(*batch)) for one in made], open(sys.argv[2], 'wb'))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", script, str(folder / "sent"), str(folder / "answer")]
    subprocess.run(command, check=True, cwd="/", env=environment)
    for method, (spelling, scores) in zip(made, pickle.loads((folder / "answer").read_bytes()), strict=True):
        assert spelling == method.spelling
        torch.testing.assert_close(scores, method.scores(*batch))


def test_an_object_is_what_it_was(folder: Path) -> None:
    method = make_method(make_method("my_heads.py:Batched(shift=2)"))
    assert isinstance(method, Method)
    assert method.parameters()["shift"] == 2


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("my_heds.py:Head", "my_heds.py': did you mean 'my_heads.py'?"),
        ("my_heads.py:Haed", "method 'my_heads.py:Haed': my_heads.py has no 'Haed': did you mean 'Head'?"),
        ("my_heads.py:Head(epoch=3)", "method 'my_heads.py:Head' has no option 'epoch': did you mean 'epochs'?"),
        (
            "my_heads.py:Head(epochs=0)",
            "'my_heads.py:Head(epochs=0)' cannot be built: ValueError: epochs must be positive",
        ),
        ("my_heads.py:Head(epochs=f())", "not a literal"),
        ("my_heads.py:nearest(odrer=1)", "method 'my_heads.py:nearest' has no option 'odrer': did you mean 'order'?"),
        (
            "my_heads.py:made(epochs=1)",
            "'my_heads.py:made' takes no options",
        ),
        ("my_heads.py:Needy", "method 'my_heads.py:Needy' needs size: e.g. my_heads.py:Needy(size=...)"),
        (
            "my_heads.py:Needy(size=1)",
            "class with fit and predict,",
        ),
        ("my_heads.py:number", "found an object of int"),
        ("my_heads.py:Batched(shift=-1)", "shift: expected a number of at least 0, found -1"),
        ("my_heads.py", "expected FILE.py:NAME or python:MODULE:NAME"),
        ("my_heads.py(epochs=3)", "expected FILE.py:NAME or python:MODULE:NAME"),
        ("python:os.path", "expected FILE.py:NAME or python:MODULE:NAME"),
        ("python:no_such_module:head", "cannot import module 'no_such_module'"),
        ("python:tests.drawn_tasks:darw", "module 'tests.drawn_tasks' has no 'darw': did you mean 'draw'?"),
    ],
)
def test_what_cannot_be_used_is_explained(folder: Path, typed: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        make_method(typed)
    assert message in str(raised.value)


def test_a_file_that_fails_is_told_and_leaves_nothing(folder: Path) -> None:
    (folder / "broken.py").write_text("import torch\n1 / 0\n")
    paths, modules = list(sys.path), set(sys.modules)
    with pytest.raises(InputError, match=r"broken\.py' failed: ZeroDivisionError: division by zero"):
        make_method("broken.py:Head")
    assert (sys.path, set(sys.modules)) == (paths, modules)
