"""What a language model is told to call the classes of a task, and which class its answer names."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

from shotproof.core.errors import InputError
from shotproof.learners.items import NO_CLASS

_THOUGHTS = re.compile(r"<think>.*?</think>", re.DOTALL)


def shown_names(classes: Sequence[str]) -> list[str]:
    """The labels as they are read: underscores as spaces.

    Raises:
        InputError: two classes could not be told apart in an answer.

    Example:
        >>> shown_names(["barn_owl", "wren"])
        ['barn owl', 'wren']
    """
    names = [" ".join(label.replace("_", " ").split()) for label in classes]
    first: dict[str, str] = {}
    for label, name in zip(classes, names, strict=True):
        words = _words(name)
        if not words or words in first:
            what = f"classes '{first[words]}' and '{label}' read the same" if words else f"class '{label}' has no words"
            raise InputError(f"{what}: an answer could not be told apart; use labels='anonymous'")
        first[words] = label
    return names


def anonymous_names(way: int) -> list[str]:
    """Names that tell nothing: `class A` to `class Z`, then `class AA` and so on.

    Example:
        >>> anonymous_names(28)[25:]
        ['class Z', 'class AA', 'class AB']
    """
    letters = string.ascii_uppercase
    return [f"class {letters[n // 26 - 1] if n >= 26 else ''}{letters[n % 26]}" for n in range(way)]


def named_class(answer: str, names: Sequence[str]) -> int:
    """The class that an answer names, or NO_CLASS where it names none, or several.

    It may be the name alone, or a sentence or a last line with one of the names; `class A` may be just `A`. Case,
    punctuation and what stands between <think> and </think> do not matter.

    Example:
        >>> named_class("I think it is a Barn Owl.", ["owl", "barn owl", "wren"])
        1
        >>> named_class("an owl or a wren", ["owl", "barn owl", "wren"])
        -1
    """
    said = _THOUGHTS.sub(" ", answer)
    lines = [line for line in said.splitlines() if _words(line)]
    known = [_words(name) for name in names]
    short = [name.removeprefix("class ") for name in known]
    for text in [_words(said), *(_words(line) for line in lines[-1:])]:
        for spelled in (known, short):
            if spelled.count(text) == 1:
                return spelled.index(text)
        if len(mentioned := _mentioned(text, known)) == 1:
            return mentioned.pop()
    return NO_CLASS


def _mentioned(text: str, names: Sequence[str]) -> set[int]:
    """The names that occur in the text as whole words; what lies within a longer name does not count."""
    found = set()
    for index in sorted(range(len(names)), key=lambda index: -len(names[index])):
        text, times = re.subn(rf"(?<!\S){re.escape(names[index])}(?!\S)", "\0", text)
        if times:
            found.add(index)
    return found


def _words(text: str) -> str:
    """In lower case, with single spaces in place of punctuation."""
    return " ".join(re.sub(r"[\W_]+", " ", text.casefold()).split())
