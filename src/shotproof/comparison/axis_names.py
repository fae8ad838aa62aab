"""What cards and leaderboards call axes and methods."""

from __future__ import annotations

import re

from shotproof.results.origin import RANDOM

SHOTS = "shots"  # the axis of random tasks, which stress nothing but how few the examples are
UNBALANCED = "unbalanced"
_FOLDERS = re.compile(r"(?<![^:])[^:]*/(?=[^/:]+)")


def axis_name(label: str, axis: str | None, shot: int | None) -> str:
    """The name of the tasks of a label that stress something, or nothing but how few examples there are.

    Example:
        >>> axis_name("random", None, 5), axis_name("random(query_dirichlet=2)", "queries", 5)
        ('random-5-shot', 'unbalanced')
    """
    if label == RANDOM:
        return f"{RANDOM}-{shot}-shot"
    return UNBALANCED if axis == "queries" else label


def without_folders(method: str) -> str:
    """A method's spelling with a file that it names told by its name alone: folders are of one machine.

    Example:
        >>> without_folders("nets/mine.py:Mine")
        'mine.py:Mine'
    """
    return _FOLDERS.sub("", method) if method.startswith("model:") or ".py:" in method else method
