"""What `shotproof doctor` finds, here and where things are broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from shotproof.cli import main
from shotproof.core.installation import extras
from shotproof.pipeline.diagnosis import doctor

# A module that is None in sys.modules cannot be imported.
WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = None
from shotproof.cli import main
sys.argv = ["shotproof", "doctor"]
main()
"""


def test_what_is_installed_is_told_with_its_version() -> None:
    found = doctor()
    told = {dependency.name: dependency.version for dependency in found.dependencies}
    assert found.works
    assert told["numpy"] == version("numpy")
    assert {extra.name: extra.missing for extra in found.extras}["lite"] == ()
    assert found.devices["cpu"].endswith("cores")
    assert {model_file.encoder: model_file.problem for model_file in found.model_files} == {
        "lite0": None,
        "birdnet": None,
    }


def test_an_extra_of_which_something_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "shotproof-9.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: shotproof\nVersion: 9\nProvides-Extra: one\nProvides-Extra: both\n"
        "Requires-Dist: numpy>=2\nRequires-Dist: no-such-package>=1; extra == 'one'\n"
        "Requires-Dist: numpy>=999; extra == 'both'\nRequires-Dist: shotproof[one]; extra == 'both'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    one, both = extras()
    assert one.missing == ("no-such-package",)
    assert both.missing == ("numpy", "no-such-package")
    assert both.install == "pip install 'shotproof[both]'"


def test_the_cache_has_a_place_a_size_and_a_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cache = tmp_path / "not" / "there"
    monkeypatch.setenv("SHOTPROOF_CACHE", str(cache))
    assert vars(doctor().cache) == {"folder": str(cache), "bytes": 0, "problem": None}
    assert not cache.exists()
    cache.mkdir(parents=True)
    (cache / "kept").write_bytes(b"12345")
    assert doctor().cache.bytes == 5
    monkeypatch.setenv("SHOTPROOF_CACHE", str(cache / "kept" / "below"))
    assert doctor().cache.problem == f"cannot be written: {os.strerror(20)}"


def test_the_command_fails_where_the_core_cannot_work() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_PYARROW], text=True, capture_output=True)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines()[-1].endswith("do not work: pyarrow")


def test_the_command_tells_it_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["shotproof", "doctor", "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    told = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0
    assert told["works"] is True
    assert told["dependencies"][0].keys() == {"name", "expected", "version", "problem"}
