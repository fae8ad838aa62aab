"""Files of a run that cannot be read, told all at once, with the way to go on without them."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Sequence

from shotproof.catalog.catalog import Catalog
from shotproof.comparison.numbers import listed
from shotproof.core.errors import UnreadableItem
from shotproof.core.nouns import counted

SHOWN = 10


def unreadable_files(catalog: Catalog, items: Sequence[str]) -> UnreadableItem:
    """Name the files that cannot be read, and the way to go on without them."""
    paths = dict(zip(catalog.items, catalog.paths, strict=True))
    named = listed([os.path.normpath(paths[item]) for item in items], SHOWN)
    return UnreadableItem(
        f"{counted(len(items), 'file')} of {len(catalog):,} cannot be read: {named}; mend or remove them, or leave "
        'them out with --skip-bad (in an experiment file: on_error = "skip" in [features])'
    )


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Within it, no warning is logged: whoever uses it tells the same as an error."""
    logger = logging.getLogger("shotproof")
    logger.addFilter(_refuse_record)
    try:
        yield
    finally:
        logger.removeFilter(_refuse_record)


def _refuse_record(record: logging.LogRecord) -> bool:
    return False
