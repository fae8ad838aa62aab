"""Nothing in the source unpickles, evaluates or trusts what a file holds, but for these calls with their reasons."""

from __future__ import annotations

import ast
from pathlib import Path

import shotproof

ROOT = Path(shotproof.__file__).parent
UNSAFE = {"eval", "exec", "compile", "pickle.load", "pickle.loads", "joblib.load", "torch.load", "np.load", "system"}
KNOWN = {
    ("core/runtime/shared_state.py", "pickle.load"): "what the parent process has sent, or who uses the cluster",
    ("core/runtime/ray.py", "pickle.loads"): "what a worker of the user's cluster has sent",
    ("core/runtime/ray_worker.py", "pickle.loads"): "what the user of the cluster has sent",
    ("core/runtime/worker.py", "pickle.loads"): "what the parent process has sent",
    ("core/runtime/shared_state.py", "pickle.loads"): "what a worker of this process has sent",
    ("learners/custom/code.py", "exec"): "code that the user trusts",
    ("learners/custom/code.py", "compile"): "code that the user trusts",
    ("features/encoders/lite0.py", "torch.load"): "by weights_only",
    ("models/decoded_items.py", "np.load"): "without pickles, which is the default",
}


def calls() -> dict[tuple[str, str], list[ast.Call]]:
    """The calls in the source that are unsafe, or would be with other arguments, by file and name."""
    found: dict[tuple[str, str], list[ast.Call]] = {}
    for file in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in UNSAFE:
                found.setdefault((file.relative_to(ROOT).as_posix(), ast.unparse(node.func)), []).append(node)
    return found


def test_every_unsafe_call_is_known() -> None:
    assert set(calls()) == set(KNOWN)


def test_what_loads_arrays_and_weights_takes_no_pickles() -> None:
    for (file, name), nodes in calls().items():
        for node in nodes:
            given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            if name == "torch.load":
                assert given.get("weights_only") == "True", file
            if name == "np.load":
                assert given.get("allow_pickle", "False") == "False", file


def test_no_code_of_a_downloaded_model_is_trusted() -> None:
    for file in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg in ("trust_remote_code", "allow_pickle"):
                assert ast.unparse(node.value) == "False", file
