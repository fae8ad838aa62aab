"""`shotproof sample`: names of changes in place of samplers."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from shotproof.cli.app import app
from shotproof.core.errors import InputError


def test_the_name_of_a_change_says_which_sampler_applies_it(tmp_path: Path) -> None:
    typed = ["sample", str(tmp_path / "none.parquet"), "--sampler", "blur", "-o", str(tmp_path / "tasks.parquet")]
    with pytest.raises(InputError, match=r"unknown sampler 'blur': it is a change, \"changed\(change='blur'\)\""):
        CliRunner().invoke(app, typed, catch_exceptions=False)
