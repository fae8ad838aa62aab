"""Small data that tests draw for themselves."""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.trust import no_trust, trusting

# HYPOTHESIS_PROFILE=thorough draws more examples than make test has time for.
settings.register_profile("quick", max_examples=20, deadline=None)
settings.register_profile("thorough", max_examples=200, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

MEMORY, ROOM = Path("/dev/shm"), 2 << 30  # bytes: several times what all tests leave at a time

Data = tuple[Catalog, Attributes]


def pytest_configure() -> None:
    """Temporary folders lie in memory where there is room: tests write 28,000 files, and wait for a disk with each."""
    if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ["TMPDIR"] = tempfile.mkdtemp(prefix="shotproof-tests-", dir=MEMORY)
        tempfile.tempdir = None  # asks for it again
        atexit.register(shutil.rmtree, os.environ["TMPDIR"], ignore_errors=True)


def pytest_collection_finish() -> None:
    """What has been imported stays: no collection of garbage need look at it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _typed_by_tests() -> Iterator[None]:
    """Trust what tests name where they call the library's inside. Commands and public functions do without it."""
    with trusting(True):
        yield


@pytest.fixture(autouse=True)
def _named_by_strangers(request: pytest.FixtureRequest) -> Iterator[None]:
    """Trust nothing in tests of what files name."""
    with no_trust() if request.node.get_closest_marker("strangers") else contextlib.nullcontext():
        yield


@functools.cache
def draw_data(
    seed: int = 0, classes: int = 8, items: int = 40, words: int = 12, held: int = 4, source_of: int | None = None
) -> Data:
    """A catalog and attributes: every item holds a few of the words; `source_of` items in a row share a source.

    Two fifths of a class are in one of four contexts, a third in the other three, and a quarter in none.
    """
    rng = np.random.default_rng(seed)
    names = [f"class{c:02d}/item{i:03d}" for c in range(classes) for i in range(items)]
    labels = [name.split("/")[0] for name in names]
    columns = {"item": names, "path": [f"{n}.png" for n in names], "label": labels, "split": ["test"] * len(names)}
    columns["context"] = [
        f"context{(c + (0 if 5 * i < 2 * items else 1 + i % 3)) % 4}" if 4 * i < 3 * items else "none"
        for c in range(classes)
        for i in range(items)
    ]
    if source_of is not None:
        columns["source"] = [f"source{i // source_of}" for i in range(len(names))]
    vocabulary = np.array([f"word{w:02d}" for w in range(words)])
    share = 1 / (np.arange(words) + 2)
    lists = {
        name: rng.choice(vocabulary, size=rng.integers(0, held + 1), replace=False, p=share / share.sum()).tolist()
        for name in names
    }
    return Catalog(pa.table(columns)), Attributes.from_words(lists)


@pytest.fixture
def data() -> Data:
    return draw_data()


@pytest.fixture
def make_data() -> Callable[..., Data]:
    return draw_data


@pytest.fixture
def quiet_transformers() -> Iterator[None]:
    """No progress bars and no advice of transformers, which warnings-as-errors would trip over."""
    import transformers

    logging: Any = transformers.logging
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    yield
    logging.enable_progress_bar()
    logging.set_verbosity_warning()
