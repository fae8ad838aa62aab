"""Check of tasks with changed items against the definition of their change, written with plain sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from shotproof.changes.change import BackgroundChange, Change, changes
from shotproof.core.errors import InputError

SAMPLER = "changed"
COPIES = "copied"
_SIDES = {"query": ("query",), "support": ("support",), "both": ("support", "query")}


@dataclass(frozen=True)
class ItemColumns:
    """Class, background and context of each item of a catalog; the background is None if no other item has it."""

    labels: Mapping[str, str]
    backgrounds: Mapping[str, str | None]
    contexts: Mapping[str, str | None]


def check_changes(
    task: list[dict[str, Any]], options: Mapping[str, Any], columns: ItemColumns
) -> Iterator[tuple[str, str]]:
    """Yield the class and the reason for each item of a task that is not changed as the options say.

    The recorded side has the recorded change, and the other side none. A background is that of another item of the
    class (`mixed-same`), of another class of the task (`mixed-rival`), or of any other item (`mixed-random`). If the
    supports of a class have a planted context, its backgrounds are from there.

    Args:
        task: rows of one task
        options: options of the sampler
        columns: those of the catalog
    """
    expected, sides = _read(str(options.get("change", ""))), _SIDES.get(str(options.get("side", "query")), ())
    rules = _Rules(expected, columns, {row["label"]: _planted(row, columns.contexts) for row in task})
    for row in task:
        for side in ("support", "query"):
            spellings = row.get(f"{side}_change")
            if (spellings is not None) != (side in sides):
                yield row["label"], f"the {side} items are {'not ' if side in sides else ''}changed"
            elif spellings is not None:
                for item, spelling in zip(row[side], spellings, strict=True):
                    reason = rules.reason(item, row["label"], _read(spelling))
                    if reason:
                        yield row["label"], f"{side} item '{item}' {reason}"


def check_copies(
    task: list[dict[str, Any]], options: Mapping[str, Any], columns: ItemColumns
) -> Iterator[tuple[str, str]]:
    """Yield the class and the reason for each support item of a task whose copies are not those that the options say.

    Each item as it is has one copy by each change, or `copies` by a change that shows other backgrounds, all of them
    different, and there are no other copies. Backgrounds follow the rules of `check_changes`.

    Args:
        task: rows of one task
        options: options of the sampler
        columns: those of the catalog
    """
    expected = [change for change in (_read(str(spelling)) for spelling in options.get("changes", ())) if change]
    planted = {row["label"]: _planted(row, columns.contexts) for row in task}
    for row in task:
        label = row["label"]
        spellings = row.get("support_change")
        if spellings is None:
            yield label, "the support items have no copies"
            continue
        pairs = Counter(zip(row["support"], spellings, strict=True))
        originals = [item for item, spelling in pairs if not spelling]
        for (item, spelling), count in pairs.items():
            if count > 1:
                yield label, f"support item '{item}' occurs {count} times with the change '{spelling or 'none'}'"
            if spelling and item not in originals:
                yield label, f"support item '{item}' has copies but is not in the support itself"
        for kind in expected:
            shows_others = isinstance(kind, BackgroundChange) and kind.plates is not None
            needed = int(options.get("copies", 1)) if shows_others else 1
            counts = Counter(item for item, spelling in pairs if spelling and _plain(_read(spelling)) == kind)
            for item in originals:
                if counts[item] != needed:
                    yield label, f"support item '{item}' has {counts[item]} copies by '{kind}' instead of {needed}"
        for item, spelling in pairs:
            change = _read(spelling)
            plain = _plain(change)
            if spelling and plain not in expected:
                yield label, f"support item '{item}' has a copy by '{spelling}', which is none of the changes"
            elif spelling:
                reason = _Rules(plain, columns, planted).reason(item, label, change)
                if reason:
                    yield label, f"a copy of support item '{item}' {reason}"


def _plain(change: Change | None) -> Change | None:
    """Return a change without its plate."""
    return replace(change, plate=None) if isinstance(change, BackgroundChange) else change


def _planted(row: Mapping[str, Any], contexts: Mapping[str, str | None]) -> str | None:
    """Return the context that the task planted in the supports of a class, if any."""
    planted: str | None = row["attribute"]
    return planted if all(contexts.get(item) == planted for item in row["support"]) else None


@dataclass(frozen=True)
class _Rules:
    """Rules for the items of one task.

    planted: planted context of each class of the task, None if there is none
    """

    expected: Change | None
    columns: ItemColumns
    planted: Mapping[str, str | None]

    def reason(self, item: str, label: str, change: Change | None) -> str | None:
        """Return why an item is not changed as expected; None if it is."""
        plate = change.plate if isinstance(change, BackgroundChange) else None
        plain = _plain(change)
        if plain is None or plain != self.expected:
            return f"has the change '{change or 'none'}' instead of '{self.expected}'"
        kind = change.plates if isinstance(change, BackgroundChange) else None
        if kind is None:
            return None if plate is None else f"shows the background of '{plate}'"
        labels, backgrounds = self.columns.labels, self.columns.backgrounds
        if plate is None or plate not in labels:
            return f"shows the background of '{plate}', which is not in the catalog"
        if plate == item or (backgrounds.get(item) is not None and backgrounds.get(item) == backgrounds.get(plate)):
            return "shows its own background"
        if kind == "random":
            return None
        if labels[plate] not in ({label} if kind == "same" else set(self.planted) - {label}):
            return f"shows the background of '{plate}', of class '{labels[plate]}'"
        planted, context = self.planted[labels[plate]], self.columns.contexts.get(plate)
        if planted is not None and context != planted:
            return f"shows the background of '{plate}', in context '{context}' instead of '{planted}'"
        return None


@lru_cache(maxsize=65536)
def _read(spelling: str) -> Change | None:
    """Return a change; None for an item without one, or for a change that is unknown here."""
    try:
        return changes.make(spelling) if spelling else None
    except InputError:
        return None
