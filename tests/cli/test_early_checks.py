"""What is misspelled is told before any file is read: the files of these commands are not there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from shotproof.cli.app import main

NOWHERE = "not-there.parquet"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["compare", NOWHERE, "--interval", "image"], "unknown interval 'image': did you mean 'images'?"),
        (["compare", NOWHERE, "--level", "95"], "level: expected a share above 0 and below 1"),
        (["compare", NOWHERE, "--metric", "wac"], "unknown metric 'wac': did you mean 'wacc'?"),
        (["compare", NOWHERE, "-o", "folder.html"], "folder.html is a folder, expected"),
        (["compare", NOWHERE, "--figures", "a-file"], "a-file is a file"),
        (["compare", NOWHERE, "--projection", "tnse"], "unknown projection 'tnse': did you mean 'tsne'?"),
        (["encode", NOWHERE, "--stage", "2nd", "-o", "f"], "or all, found '2nd'"),
        (["encode", NOWHERE, "--stage", "all", "-o", "a-file"], "a-file is a file"),
        (["sample", NOWHERE, "--sampler", "randm", "-o", "t"], "unknown sampler 'randm': did you mean 'random'?"),
        (["sample", NOWHERE, "--sampler", "random", "-o", "a-file/t"], "a-file is a file"),
        (["sample", NOWHERE, "--sampler", "random", "-o", "t", "--seed", "-1"], "--seed"),
        (["sample", NOWHERE, "--sampler", "random", "-o", "t", "--tasks", "0"], "--tasks"),
        (["sample", NOWHERE, "--sampler", "random", "-o", "t", "--way", "1"], "--way"),
        (["evaluate", NOWHERE, NOWHERE, "-m", "nc", "-o", "r"], "unknown method 'nc': did you mean 'ncc'?"),
        (["evaluate", NOWHERE, NOWHERE, "-t", "l3", "-o", "r"], "unknown transform 'l3'"),
        (["evaluate", NOWHERE, NOWHERE, "-o", "a-file/r"], "a-file is a file"),
        (["evaluate", NOWHERE, NOWHERE, "-o", "r", "--seed", "-1"], "--seed"),
    ],
)
def test_flags_are_checked_first(
    arguments: list[str],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file").write_text("")
    (tmp_path / "folder.html").mkdir()
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(sys, "argv", ["shotproof", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert expected in error
    assert NOWHERE not in error
    assert sorted(tmp_path.iterdir()) == before
