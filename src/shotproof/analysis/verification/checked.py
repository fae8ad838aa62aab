"""What a check came to: what was verified, what is wrong, and what could not be checked, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Conclusion = Literal["verified", "wrong", "not verified"]


@dataclass(frozen=True)
class Checked:
    """What a check found.

    problems: what is wrong, in sentences that begin with the file
    verified: what was seen to hold, each with the files that it holds of
    unchecked: why something was not checked, each with the files that it is of
    open: of these reasons, those for which the counts or accuracies of a file could not be computed again
    conclusion: `verified` if nothing is wrong and the counts and accuracies of every file came out again (of a bundle:
        its files are as its manifest says); `wrong` if there is a problem; else `not verified`
    """

    problems: tuple[str, ...]
    verified: Mapping[str, tuple[str, ...]]
    unchecked: Mapping[str, tuple[str, ...]]
    open: tuple[str, ...]
    conclusion: Conclusion


@dataclass
class Findings:
    """Collects what a check finds, file by file."""

    problems: list[str] = field(default_factory=list)
    verified: dict[str, list[str]] = field(default_factory=dict)
    unchecked: dict[str, list[str]] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)  # reasons for which a file's main claim could not be checked

    def hold(self, name: str, what: str) -> None:
        """Note what was seen to hold of a file."""
        _add(self.verified, what, name)

    def leave(self, name: str, why: str, *, main: bool = False) -> None:
        """Note what was not checked of a file; main: it is what the file is about."""
        _add(self.unchecked, why, name)
        if main:
            self.open.append(why)

    def refuse(self, name: str, problems: list[str]) -> bool:
        """Note what is wrong with a file, and return whether anything is."""
        self.problems += [f"{name}: {problem}" for problem in problems]
        return bool(problems)

    def checked(self) -> Checked:
        """Conclude."""
        return Checked(
            tuple(self.problems),
            {what: tuple(names) for what, names in self.verified.items()},
            {why: tuple(names) for why, names in self.unchecked.items()},
            tuple(dict.fromkeys(self.open)),
            "wrong" if self.problems else "not verified" if self.open or not self.verified else "verified",
        )


def _add(names: dict[str, list[str]], about: str, name: str) -> None:
    """Name a file once, however many of its methods it is about."""
    if name not in names.setdefault(about, []):
        names[about].append(name)
