"""Trust in names typed by a user, objects passed by a user, and names in a file with and without consent."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import shotproof as sp
from shotproof.analysis.compare import compare
from shotproof.analysis.inputs import Inputs
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.trust import NotTrusted, Reach, reading_below, require_trust, trusting, typed_by_user
from shotproof.features.encoder import encoders
from shotproof.learners.incontext.chat import Chat
from shotproof.learners.method import make_method
from shotproof.tasks.sampler import samplers
from tests.conftest import draw_data

pytestmark = pytest.mark.strangers

HEAD = """
import torch

def head(support, labels, query):
    return torch.stack([query @ support[labels == label].mean(0) for label in labels.unique()], 1)
"""


@pytest.fixture
def head(tmp_path: Path) -> str:
    (tmp_path / "heads.py").write_text(HEAD)
    return f"{tmp_path / 'heads.py'}:head"


@pytest.fixture
def data() -> tuple[sp.Catalog, sp.Features, sp.TaskSet]:
    catalog, _ = draw_data()
    values = np.random.default_rng(0).normal(size=(len(catalog), 8))
    features = sp.Features.from_array(list(catalog.items), values)
    return catalog, features, sp.sample(catalog, "random", way=3, shot=2, query=3, tasks=12)


def test_nothing_is_trusted_inside_of_the_library(head: str, tmp_path: Path) -> None:
    for spelled in (head, f"python:{Path(head).stem}:head", "python:os:system", f"bpa(head='{head}')"):
        with pytest.raises(NotTrusted, match="runs the code of"):
            make_method(spelled)
    with pytest.raises(NotTrusted, match=r"encoder 'file' reads .*x.npy"):
        encoders.make(f"file:{tmp_path / 'x.npy'}")
    with pytest.raises(NotTrusted, match="downloads from the hub"):
        encoders.make("hf:name/model(hub=True)")
    with pytest.raises(NotTrusted, match="sends items to the server in"):
        make_method("chat(model='m')")


def test_what_a_user_passes_to_a_public_function_is_trusted(
    head: str, data: tuple[sp.Catalog, sp.Features, sp.TaskSet]
) -> None:
    _, features, tasks = data
    for given in (head, [head], {"name": head}, [{"name": head}], f"bpa(head='{head}')"):
        assert sp.evaluate(tasks, features, given).methods
    assert sp.evaluate(tasks, features, [head], runtime=Runtime(workers=2, progress=False)).methods == [head]
    assert sp.encoders.make("file:x.npy").spelling == "file:x.npy"
    assert sp.methods.make("chat(model='m', url='https://there.example/v1')")
    assert sp.methods.make("chat", model="m").spelling == "chat(model='m')"


def test_a_table_that_a_user_passes_is_trusted_and_another_of_its_name_is_not(tmp_path: Path) -> None:
    (tmp_path / "tree.csv").touch()
    named = {"name": "semantic", "class_distances": str(tmp_path / "tree.csv")}

    @typed_by_user
    def act(*typed: object) -> None:
        samplers.make(named)

    act(named)
    act(str(tmp_path / "tree.csv"))
    for other in ("semantic", {"name": "semantic"}, {"name": "semantic", "class_distances": "tree.csv"}):
        with pytest.raises(NotTrusted):
            act(other)


def test_whatever_a_user_passes_is_looked_through() -> None:
    @typed_by_user
    def act(*given: object, **named: object) -> int:
        return len(given) + len(named)

    unprintable = type("Unprintable", (), {"__repr__": lambda self: pytest.fail("it was printed")})()
    odd: dict[object, object] = {"name": unprintable, 1: {2}, None: [unprintable]}
    nested: dict[object, object] = {"name": "x", "options": {1: 1, "a": odd}}
    assert act(odd, nested, [odd, "x"] * 2000, name=unprintable, other=odd) == 5


def test_a_word_that_a_user_types_makes_no_model_of_that_name_trusted() -> None:
    @typed_by_user
    def act(metric: str) -> None:
        make_method("chat(model='acc')")

    with pytest.raises(NotTrusted, match="sends items to the server in"):
        act("acc")


def test_an_object_is_trusted_whatever_its_options() -> None:
    assert make_method(Chat(model="m", url="https://there.example/v1")).spelling == "chat(model='m')"


def test_results_that_a_user_evaluated_are_evaluated_anew_with_the_method_or_with_trust(
    head: str, data: tuple[sp.Catalog, sp.Features, sp.TaskSet]
) -> None:
    catalog, features, tasks = data
    results = sp.evaluate(tasks, features, ["ncc", head])
    parts = [results, tasks, catalog, features]
    with pytest.raises(NotTrusted, match=r"method .* cannot be rebuilt"):
        sp.compare(parts, halvings=2, intervals="images")
    for more in ({"trust": True}, {"methods": [sp.methods.make("ncc"), _made(head)]}):
        assert sp.compare(parts, halvings=2, intervals="images", **more).interval_names == ("images",)  # type: ignore[arg-type]


def test_code_that_has_changed_since_it_was_evaluated_is_not_run(
    head: str, data: tuple[sp.Catalog, sp.Features, sp.TaskSet]
) -> None:
    catalog, features, tasks = data
    results = sp.evaluate(tasks, features, head)
    Path(head.rpartition(":")[0]).write_text(f"{HEAD}\nraise SystemExit('it ran')\n")
    with pytest.raises(sp.ShotproofError, match=r"heads.py:head'.* code has changed"):
        sp.compare([results, tasks, catalog, features], halvings=2, trust=True, intervals="images")


def test_code_is_found_from_the_folder_of_the_run_that_names_it(
    head: str, data: tuple[sp.Catalog, sp.Features, sp.TaskSet], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, features, tasks = data
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    results = sp.evaluate(tasks, features, "../heads.py:head")
    monkeypatch.chdir("/")
    named = {"trust": True, "folders": [tmp_path / "run"]}
    inputs = Inputs([results], [tasks], [catalog], [features], halvings=2, **named)  # type: ignore[arg-type]
    assert compare(inputs).interval_names == ("images", "sampler")
    (message,) = compare(replace(inputs, trust=False)).notes
    assert "images interval" in message
    assert "method '../heads.py:head' of the results" in message


def test_files_below_a_folder_may_be_read_and_no_link_leads_out(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out")
    below, outside = tmp_path / "in" / "x.csv", tmp_path / "out" / "x.csv"
    with reading_below(tmp_path / "in"):
        require_trust(Reach("reads", "", below))
        for file in (outside, tmp_path / "in" / ".." / "out" / "x.csv", tmp_path / "in" / "link" / "x.csv"):
            with pytest.raises(NotTrusted):
                require_trust(Reach("reads", "", file))
        with pytest.raises(NotTrusted):
            require_trust(Reach("reads", "", Path("s3://bucket/x.csv")))
    with pytest.raises(NotTrusted):
        require_trust(Reach("reads", "", below))


def test_a_part_of_what_was_typed_is_not_typed() -> None:
    @typed_by_user
    def act(spelled: str) -> None:
        require_trust("runs", "heads.py:Head")

    act("heads.py:Head")
    act("bpa(head='heads.py:Head')")
    for other in ("my_heads.py:Head", "heads.py:Header", "heads.py"):
        with pytest.raises(NotTrusted):
            act(other)


def test_agreement_adds_to_agreement() -> None:
    with trusting(["a"]), trusting(["b"]):
        require_trust("a")
        require_trust("b")
        with trusting(False), pytest.raises(NotTrusted):
            require_trust("c")


def _made(spelled: str) -> sp.Method:
    with trusting(True):
        return make_method(spelled)


def test_a_module_is_not_imported_to_ask_about_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "asked_about"
    package.mkdir()
    for name in ("__init__", "inner"):
        (package / f"{name}.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(NotTrusted, match=r"runs the code of the module asked_about.inner \(digest [0-9a-f]{16}\)"):
        make_method("python:asked_about.inner:head")
    assert not (tmp_path / "imported").exists()
    assert "asked_about" not in sys.modules
