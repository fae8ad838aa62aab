"""Outcome of a check: what was verified, what is wrong, and what could not be checked and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Conclusion = Literal["verified", "wrong", "not verified"]


@dataclass(frozen=True)
class Checked:
    """Outcome of a check.

    problems: what is wrong, in sentences that begin with the file
    verified: what was verified, each with the files it applies to
    unchecked: reasons why something was not checked, each with the files it applies to
    open: those of these reasons that prevented recomputing the counts or accuracies of a file
    conclusion: `verified` if nothing is wrong and the counts and accuracies of every file were reproduced (for a
        bundle: its files match its manifest); `wrong` if there is a problem; else `not verified`
    """

    problems: tuple[str, ...]
    verified: Mapping[str, tuple[str, ...]]
    unchecked: Mapping[str, tuple[str, ...]]
    open: tuple[str, ...]
    conclusion: Conclusion


@dataclass
class Findings:
    """Collector of a check's findings, file by file."""

    problems: list[str] = field(default_factory=list)
    verified: dict[str, list[str]] = field(default_factory=dict)
    unchecked: dict[str, list[str]] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)  # reasons for which a file's main claim could not be checked

    def add_verified(self, name: str, check: str) -> None:
        """Record what was verified for a file."""
        _add(self.verified, check, name)

    def add_unchecked(self, name: str, reason: str, *, main: bool = False) -> None:
        """Record why something was not checked for a file; `main` if it is the file's main claim."""
        _add(self.unchecked, reason, name)
        if main:
            self.open.append(reason)

    def add_problems(self, name: str, problems: list[str]) -> bool:
        """Record what is wrong with a file, and return whether anything is."""
        self.problems += [f"{name}: {problem}" for problem in problems]
        return bool(problems)

    def checked(self) -> Checked:
        """Return the outcome of the check."""
        return Checked(
            tuple(self.problems),
            {check: tuple(names) for check, names in self.verified.items()},
            {reason: tuple(names) for reason, names in self.unchecked.items()},
            tuple(dict.fromkeys(self.open)),
            "wrong" if self.problems else "not verified" if self.open or not self.verified else "verified",
        )


def _add(names: dict[str, list[str]], finding: str, name: str) -> None:
    """Add a file to a finding once, however many of its methods it concerns."""
    if name not in names.setdefault(finding, []):
        names[finding].append(name)
