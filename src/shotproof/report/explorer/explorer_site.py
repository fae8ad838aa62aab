"""Explorer as files, each built on request: a server sends them, an export writes them."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shotproof.analysis.explored_tasks import NONE, ExploredTasks, confusion, reasons_of
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.item_files import item_files
from shotproof.core.errors import UnreadableItem
from shotproof.media.clip import is_sound, read_clip
from shotproof.media.unwritten import ItemFile
from shotproof.report.pages.album import playable, spectrogram, thumbnail
from shotproof.report.pages.render import TEMPLATES
from shotproof.results.answers import Answers
from shotproof.version import __version__

STATIC = Path(__file__).parent / "static"
INDEX = "index.html"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".bin": "application/octet-stream",
    ".jpg": "image/jpeg",
    ".mp3": "audio/mpeg",
    ".svg": "image/svg+xml",
}
PART_TASKS = 16  # tasks per file: 100 kB for 5-way tasks with 15 queries
MOST_PAIRS = 20_000  # pairs of confused classes
LARGE_SIDE = 480
THUMBNAILS_KEPT = 4096  # 12 MB
DECODED_AT_ONCE = 4  # images or sounds decoded at a time, however many are requested


@dataclass(frozen=True)
class ExploredSet:
    """Task set with its names.

    key: name in links
    name: name for readers
    catalog: index among the site's catalogs; None if the catalog of the tasks is missing
    context: name of the contexts; None if there are none
    """

    key: str
    name: str
    tasks: ExploredTasks
    catalog: int | None
    context: str | None


class Site:
    """Files of an explorer, by their paths.

    title: title of the page
    sets: task sets to explore
    catalogs: catalogs of the items shown
    """

    def __init__(self, title: str, sets: Sequence[ExploredSet], catalogs: Sequence[Catalog]) -> None:
        self.title, self.sets, self.catalogs = title, sets, catalogs
        self._static = {path.name: path for path in sorted(STATIC.iterdir())} | {"page.css": TEMPLATES / "page.css"}
        self._clips = [item_files(catalog) for catalog in catalogs]
        self._columns = [_columns(task_set.tasks) for task_set in sets]
        self._decoding = threading.BoundedSemaphore(DECODED_AT_ONCE)
        self._image = lru_cache(maxsize=THUMBNAILS_KEPT)(self._make_image)
        self._routes: list[tuple[re.Pattern[str], Callable[..., bytes | None]]] = [
            (re.compile(pattern, re.ASCII), build)
            for pattern, build in (
                (r"data/index\.json", self._index),
                (r"data/(\d{1,9})/tasks-(\d{1,9})\.json", self._part),
                (r"data/(\d{1,9})/confusion-(\d{1,9})\.json", self._confusion),
                (r"data/(\d{1,9})/([a-z_]+(?:-\d{1,9})?)\.bin", self._column),
                (r"items/(\d{1,9})/(\d{1,9})\.jpg", self._image),
                (r"items/(\d{1,9})/(\d{1,9})-large\.jpg", self._large_image),
                (r"items/(\d{1,9})/(\d{1,9})\.mp3", self._sound),
            )
        ]

    def content(self, path: str) -> bytes | None:
        """Return the content of a file; None if there is no such file, or if its item cannot be read."""
        if path in self._static:
            return self._static[path].read_bytes()
        for pattern, build in self._routes:
            match = pattern.fullmatch(path)
            if match:
                return build(*(int(group) if group.isdigit() else group for group in match.groups()))
        return None

    def paths(self) -> Iterator[str]:
        """Yield the paths of all files except the large images, with the items of all tasks."""
        yield from self._static
        yield "data/index.json"
        items: set[tuple[int, int]] = set()
        for index, task_set in enumerate(self.sets):
            yield from (f"data/{index}/{name}.bin" for name in self._columns[index])
            yield from (f"data/{index}/confusion-{number}.json" for number in range(len(task_set.tasks.answers)))
            yield from (f"data/{index}/tasks-{part}.json" for part in range(-(-len(task_set.tasks) // PART_TASKS)))
            if task_set.catalog is not None:
                items |= {(task_set.catalog, int(row)) for row in task_set.tasks.row if row != NONE}
        for catalog, row in sorted(items):
            yield f"items/{catalog}/{row}.jpg"
            if is_sound(self._clips[catalog][row]):
                yield f"items/{catalog}/{row}.mp3"

    def _index(self) -> bytes:
        sets = [self._describe(task_set, columns) for task_set, columns in zip(self.sets, self._columns, strict=True)]
        return _json({"title": self.title, "version": __version__, "part_tasks": PART_TASKS, "sets": sets})

    def _describe(self, task_set: ExploredSet, columns: dict[str, npt.NDArray[Any]]) -> dict[str, Any]:
        tasks = task_set.tasks
        catalog = None if task_set.catalog is None else self.catalogs[task_set.catalog]
        names = {} if catalog is None else catalog.class_names
        return {
            "key": task_set.key,
            "name": task_set.name,
            "tasks": len(tasks),
            "catalog": task_set.catalog,
            "sounds": catalog is not None and catalog.medium == "sound",
            "context": task_set.context,
            "labels": tasks.label.names,
            "names": [names.get(label, label) for label in tasks.label.names],
            "planted": tasks.planted.names,
            "contexts": tasks.context.names,
            "classifiers": [
                {"name": str(answers.classifier), "has_answers": answers.answered is not None}
                for answers in tasks.answers
            ],
            "columns": {name: f"Uint{8 * values.itemsize}Array" for name, values in columns.items()},
        }

    def _column(self, index: int, name: str) -> bytes | None:
        if index >= len(self.sets) or name not in self._columns[index]:
            return None
        values = self._columns[index][name]
        return values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()

    def _part(self, index: int, part: int) -> bytes | None:
        if index >= len(self.sets) or part * PART_TASKS >= len(self.sets[index].tasks):
            return None
        tasks = self.sets[index].tasks
        numbers = range(part * PART_TASKS, min((part + 1) * PART_TASKS, len(tasks)))
        items: dict[int, list[Any]] = {}
        return _json({"tasks": [_task(tasks, number, items) for number in numbers], "items": items})

    def _confusion(self, index: int, number: int) -> bytes | None:
        if index >= len(self.sets) or number >= len(self.sets[index].tasks.answers):
            return None
        tasks = self.sets[index].tasks
        confused = confusion(tasks, tasks.answers[number], MOST_PAIRS)
        if confused is None:
            return _json(None)
        return _json({name: values.tolist() for name, values in vars(confused).items()})

    def _make_image(self, catalog: int, row: int) -> bytes | None:
        return self._encode_item(catalog, row, thumbnail, spectrogram)

    def _large_image(self, catalog: int, row: int) -> bytes | None:
        return self._encode_item(
            catalog, row, lambda path: thumbnail(path, LARGE_SIDE), lambda samples: spectrogram(samples, LARGE_SIDE)
        )

    def _sound(self, catalog: int, row: int) -> bytes | None:
        return self._encode_item(catalog, row, None, playable)

    def _encode_item(
        self,
        catalog: int,
        row: int,
        encode_image: Callable[[ItemFile], bytes] | None,
        encode_sound: Callable[[Any], bytes],
    ) -> bytes | None:
        """Decode an item and encode it again, so that a catalog that names other files cannot leak their bytes."""
        if catalog >= len(self._clips) or row >= len(self._clips[catalog]):
            return None
        clip = self._clips[catalog][row]
        try:
            with self._decoding:
                if is_sound(clip):
                    return encode_sound(read_clip(clip))
                return None if encode_image is None else encode_image(clip)
        except UnreadableItem:
            return None


def _columns(tasks: ExploredTasks) -> dict[str, npt.NDArray[Any]]:
    """Build the columns that lists are filtered and sorted by, in the smallest types; code 0 stands for none."""
    columns = {
        "number": tasks.number,
        "starts": tasks.starts,
        "rank": tasks.rank,
        "queries": tasks.answers[0].counts.n_query,
        "label": tasks.label.codes + 1,
        "planted": tasks.planted.codes + 1,
        "support_context": tasks.common_context(tasks.support) + 1,
        "query_context": tasks.common_context(tasks.query) + 1,
    }
    columns |= {f"correct-{number}": answer.counts.n_correct for number, answer in enumerate(tasks.answers)}
    return {name: values.astype(np.min_scalar_type(int(values.max()))) for name, values in columns.items()}


def _task(tasks: ExploredTasks, index: int, items: dict[int, list[Any]]) -> dict[str, Any]:
    """Describe one task, and add its items to `items`: name, row of the catalog or null, context or null."""
    rows = tasks.rows_of(index)
    classes = []
    for row, reasons in zip(rows, reasons_of(tasks, rows), strict=True):
        sides = {
            name: side.items[side.ends[row] : side.ends[row + 1]].tolist()
            for name, side in (("support", tasks.support), ("query", tasks.query))
        }
        for item in (*sides["support"], *sides["query"]):
            if item not in items:
                catalog_row, context = int(tasks.row[item]), int(tasks.context.codes[item])
                name = None if context == NONE else tasks.context.names[context]
                items[item] = [tasks.items[item].as_py(), None if catalog_row == NONE else catalog_row, name]
        reason_lists = {name: [vars(reason) for reason in values] for name, values in vars(reasons).items()}
        classes.append(sides | reason_lists)
    return {
        "accuracy": float(tasks.accuracy[index]),
        "classes": classes,
        "answers": [_answers(answer, rows) for answer in tasks.answers],
    }


def _answers(answers: Answers, rows: range) -> dict[str, Any]:
    """Return the missed queries of each class and their answers; null if the results do not record them."""
    columns = {"missed": answers.missed, "answered": answers.answered}
    return {
        name: None if column is None else column.slice(rows.start, len(rows)).to_pylist()
        for name, column in columns.items()
    }


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
