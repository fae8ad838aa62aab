"""Experiment files that tests write, and what is expected of those that cannot be run."""

from __future__ import annotations

from pathlib import Path

import pytest

from shotproof.core.errors import InputError
from shotproof.pipeline.study import run


def write_experiment(folder: Path, text: str, *changes: tuple[str, str]) -> Path:
    """The file with these changes to its text, each of which changes something."""
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file = folder / "experiment.toml"
    file.write_text(text)
    return file


def assert_refused(file: Path, expected: str, part: str = "", dry_run: bool = False) -> None:
    """The run is refused with the place, this beginning and this part of a message, before anything is in `out`."""
    with pytest.raises(InputError) as caught:
        run(file, dry_run=dry_run)
    assert str(caught.value).startswith(f"{file}, {expected}")
    assert part in str(caught.value)
    assert not (file.parent / "out").exists()


def up_to_results(files: list[str]) -> list[str]:
    """Files of a run without what is derived from its results."""
    return [name for name in files if name != "report.html" and not name.startswith("reevaluations/")]
