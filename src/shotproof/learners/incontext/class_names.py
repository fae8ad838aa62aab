"""Names of the classes of a task in the prompt, and the class that an answer names."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

from shotproof.core.errors import InputError
from shotproof.learners.items import NO_CLASS

_THOUGHTS = re.compile(r"<think>.*?</think>", re.DOTALL)


def shown_names(classes: Sequence[str]) -> list[str]:
    """Return the labels as readable names, with spaces in place of underscores.

    Raises:
        InputError: two classes could not be distinguished in an answer.

    Example:
        >>> shown_names(["barn_owl", "wren"])
        ['barn owl', 'wren']
    """
    names = [" ".join(label.replace("_", " ").split()) for label in classes]
    label_by_words: dict[str, str] = {}
    for label, name in zip(classes, names, strict=True):
        words = _words(name)
        if not words or words in label_by_words:
            problem = (
                f"classes '{label_by_words[words]}' and '{label}' read the same"
                if words
                else f"class '{label}' has no words"
            )
            raise InputError(f"{problem}: an answer could not be assigned to a class; use labels='anonymous'")
        label_by_words[words] = label
    return names


def anonymous_names(way: int) -> list[str]:
    """Return names without meaning: `class A` to `class Z`, then `class AA` and so on.

    Example:
        >>> anonymous_names(28)[25:]
        ['class Z', 'class AA', 'class AB']
    """
    letters = string.ascii_uppercase
    return [f"class {letters[n // 26 - 1] if n >= 26 else ''}{letters[n % 26]}" for n in range(way)]


def named_class(answer: str, names: Sequence[str]) -> int:
    """Find the class that an answer names, or NO_CLASS if it names none or several.

    The answer may be the name alone, or a sentence or last line with one of the names; `class A` may be shortened to
    `A`. Case, punctuation and text between <think> and </think> are ignored.

    Example:
        >>> named_class("I think it is a Barn Owl.", ["owl", "barn owl", "wren"])
        1
        >>> named_class("an owl or a wren", ["owl", "barn owl", "wren"])
        -1
    """
    spoken = _THOUGHTS.sub(" ", answer)
    lines = [line for line in spoken.splitlines() if _words(line)]
    full_names = [_words(name) for name in names]
    short_names = [name.removeprefix("class ") for name in full_names]
    for text in [_words(spoken), *(_words(line) for line in lines[-1:])]:
        for candidates in (full_names, short_names):
            if candidates.count(text) == 1:
                return candidates.index(text)
        if len(mentioned := _mentioned(text, full_names)) == 1:
            return mentioned.pop()
    return NO_CLASS


def _mentioned(text: str, names: Sequence[str]) -> set[int]:
    """Find the names that occur in the text as whole words, except inside a longer name."""
    mentioned = set()
    for index in sorted(range(len(names)), key=lambda index: -len(names[index])):
        text, replacements = re.subn(rf"(?<!\S){re.escape(names[index])}(?!\S)", "\0", text)
        if replacements:
            mentioned.add(index)
    return mentioned


def _words(text: str) -> str:
    """Convert text to lower case, with single spaces in place of punctuation."""
    return " ".join(re.sub(r"[\W_]+", " ", text.casefold()).split())
