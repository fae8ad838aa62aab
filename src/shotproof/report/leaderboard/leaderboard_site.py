"""Leaderboard as a static site: one page with all classifiers, one page per classifier, all data in one file.

Browsers do not load modules or JSON for a page that was opened as a file. So the modules are joined into one plain
script, and the data is a script too.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from shotproof.comparison.card_remedies import remedy_sentence
from shotproof.comparison.leaderboard import BoardAxis, BoardEntry, Column, Leaderboard
from shotproof.comparison.numbers import level, listed, typeset
from shotproof.core.nouns import counted, nouns
from shotproof.core.records import UNKNOWN
from shotproof.report.explorer.explorer_site import STATIC as EXPLORER_STATIC
from shotproof.report.figures.charts import Standing, standing
from shotproof.report.pages.axis_tables import NAMES
from shotproof.report.pages.render import TEMPLATES, environment
from shotproof.stats.intervals import meanings
from shotproof.version import __version__

STATIC = Path(__file__).parent / "static"
INDEX, DATA, SCRIPT, PAGES = "index.html", "data.js", "leaderboard.js", "classifiers"
MODULES = (EXPLORER_STATIC / "dom.js", *(STATIC / name for name in ("order.js", "table.js", "scatter.js", SCRIPT)))
COPIED = (TEMPLATES / "page.css", STATIC / "leaderboard.css", EXPLORER_STATIC / "icon.svg")
DECIMALS = 3  # decimals of numbers in the data: more than a page shows
_IMPORT = re.compile(r'^import .* from "\./\w+\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


def site_files(board: Leaderboard, title: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the content of each file of the site; the same leaderboard gives the same bytes."""
    templates = environment()
    pages = [page_name(entry) for entry in board.entries]
    media = {axis.medium for axis in board.axes}
    medium = media.pop() if len(media) == 1 else None
    shared: dict[str, Any] = {
        "version": __version__,
        "level": level(board.level),
        "meaning": meanings(medium)[board.interval_name],
        "mixed": len({column.interval_name for column in board.columns}) > 1,
    }
    index_template = templates.get_template("leaderboard.html")
    axes = [
        {"name": axis.name, "data_set": axis.data_set, "about": _describe(axis), "digest": axis.sets.tasks.digest}
        for axis in board.axes
    ]
    several = len(board.data_sets) > 1
    remedied = [
        (title_of(entry), f"{PAGES}/{page}", entry.remedies)
        for entry, page in zip(board.entries, pages, strict=True)
        if entry.remedies
    ]
    context = {"board": board, "lead": _lead(board), "axes": axes, "several": several, "remedied": remedied}
    yield INDEX, index_template.render(shared, up="", title=title, **context)
    yield DATA, f"globalThis.leaderboard = JSON.parse({json.dumps(_json(_data(board, pages)))});\n"
    yield SCRIPT, join_modules(MODULES)
    for path in COPIED:
        yield path.name, path.read_text(encoding="utf-8")
    template = templates.get_template("leaderboard_classifier.html")
    columns = {(column.axis, column.quantity, column.metric): column for column in board.columns}
    quantiles = {key: _quantiles(column) for key, column in columns.items()}
    for index, (entry, page) in enumerate(zip(board.entries, pages, strict=True)):
        yield (
            f"{PAGES}/{page}",
            template.render(
                shared,
                up="../",
                title=title_of(entry),
                board_title=title,
                interval_name=board.interval_name,
                entry=entry,
                remedies=remedy_sentence(entry.remedies),
                from_card=bool(entry.statements),
                tables=_tables(board, columns, entry, index),
                figures=_figures(board, columns, quantiles, index),
            ),
        )


def title_of(entry: BoardEntry) -> str:
    """Return the method and its encoder, as in a sentence; `(no name)` if both are empty."""
    return str(entry.classifier).strip() or "(no name)"


def page_name(entry: BoardEntry) -> str:
    """Return the file name of a classifier's page: readable, and unique even on case-insensitive file systems."""
    readable = re.sub(r"[^a-z0-9]+", "-", str(entry.classifier).lower()).strip("-")[:60]
    digest = hashlib.sha256("\0".join(entry.classifier).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{readable or 'classifier'}-{digest[:10]}.html"


def join_modules(paths: Iterable[Path]) -> str:
    """Join modules into one plain script; each path comes after those that it imports."""
    texts = [_EXPORT.sub("", _IMPORT.sub("", path.read_text(encoding="utf-8"))) for path in paths]
    return '"use strict";\n(() => {\n' + "\n".join(texts) + "})();\n"


def _lead(board: Leaderboard) -> str:
    data = listed([name or "the data" for name in board.data_sets])
    return f"{counted(len(board.entries), 'few-shot classifier')} on {data}. Each axis is measured on one task set."


def _describe(axis: BoardAxis) -> str:
    """Describe an axis in a sentence or two."""
    key, sets = axis.key, axis.sets
    stress = NAMES.get(sets.axis, f"Tasks by the sampler {sets.tasks.sampler}")
    shots = counted(key.shot, "shot") if key.shot else "several shots"
    sizes = f"{counted(sets.tasks.tasks, 'task')} with {key.way or 'several'} ways, {shots}"
    queries = f"{counted(key.query, 'query', 'queries')} per class" if key.query else "varying numbers of queries"
    reference = f" The reference is {sets.reference.sampler} tasks" if sets.reference else ""
    placebo = f"; in the placebo, the {nouns(axis.medium)} of each class are shuffled" if sets.placebo else ""
    searched = " The tasks were selected in the features of one encoder." if sets.tasks.searched_in else ""
    return f"{stress}: {sizes} and {queries}.{reference}{placebo}{'.' if reference else ''}{searched}"


def _data(board: Leaderboard, pages: list[str]) -> dict[str, Any]:
    positions = {axis.sets.tasks.digest: index for index, axis in enumerate(board.axes)}
    data_sets = board.data_sets
    return {
        "level": level(board.level),
        "intervalName": board.interval_name,
        "metric": board.metric,
        "dataSets": data_sets,
        "axes": [
            {
                "dataSet": data_sets.index(axis.data_set),
                "name": axis.name,
                "about": _describe(axis),
                "reference": positions.get(axis.sets.reference.digest) if axis.sets.reference else None,
            }
            for axis in board.axes
        ],
        "methods": [entry.classifier.method for entry in board.entries],
        "encoders": [
            "" if entry.classifier.encoder == UNKNOWN else entry.classifier.encoder for entry in board.entries
        ],
        "remedied": [bool(entry.remedies) for entry in board.entries],
        "pages": pages,
        "columns": [_column(column) for column in board.columns],
        "pairs": [
            {
                "columns": pair,
                "r": _round(board.correlations[pair]),
                "beaten": np.packbits(beaten).tobytes().hex(),
            }
            for pair, beaten in board.beaten.items()
        ],
    }


def _column(column: Column) -> dict[str, Any]:
    intervals = {
        name: [None if interval is None else _round(getattr(interval, name)) for interval in column.intervals]
        for name in ("mean", "low", "high")
    }
    ranks = {name: [rank and getattr(rank, name) for rank in column.ranks] for name in ("best", "worst")}
    ranked = sum(rank is not None for rank in column.ranks)
    keys = {
        "axis": column.axis,
        "quantity": column.quantity,
        "metric": column.metric,
        "intervalName": column.interval_name,
    }
    return {**keys, "of": ranked, **intervals, **ranks}


def _tables(
    board: Leaderboard, columns: dict[Any, Column], entry: BoardEntry, index: int
) -> list[tuple[str, list[dict[str, Any]]]]:
    """Build one table per data set that the classifier is measured on."""
    tables: dict[str, list[dict[str, Any]]] = {}
    for number, axis in enumerate(board.axes):
        row: dict[str, Any] = {}
        for name, quantity, metric in (
            *(("acc", "accuracy", "acc"), ("wacc", "accuracy", "wacc")),
            *(("lost_acc", "skill_lost", "acc"), ("lost_wacc", "skill_lost", "wacc")),
        ):
            column = columns.get((number, quantity, metric))
            interval = None if column is None else column.intervals[index]
            row[name] = column and interval and {"interval": interval, "rank": column.ranks[index]}
        if any(row.values()):
            verdict, advice = entry.statements.get(number, ("", ""))
            row |= {"name": axis.name, "verdict": typeset(verdict), "advice": advice}
            tables.setdefault(axis.data_set, []).append({**row, "digest": axis.sets.tasks.digest})
    return list(tables.items())


def _figures(
    board: Leaderboard, columns: dict[Any, Column], quantiles: dict[Any, tuple[float, ...]], index: int
) -> list[Markup]:
    """Draw where the classifier stands in the leaderboard's metric: by accuracy, and by skill lost."""
    figures = []
    names = {"acc": "accuracy (%)", "wacc": "worst-class accuracy (%)"}
    for quantity, label in (("accuracy", names[board.metric]), ("skill_lost", "skill lost (%), less is better")):
        rows = []
        for number, axis in enumerate(board.axes):
            column = columns.get((number, quantity, board.metric))
            interval = column and column.intervals[index]
            if interval and not math.isnan(interval.mean):
                data_set = f"{axis.key.data_set}: " if len(board.data_sets) > 1 else ""
                rows.append(Standing(f"{data_set}{axis.name}", interval, quantiles[number, quantity, board.metric]))
        if rows:
            figures.append(standing(rows, label, f"{label} among all classifiers"))
    return figures


def _quantiles(column: Column) -> tuple[float, ...]:
    """Return the minimum, the quartiles and the maximum."""
    means = [interval.mean for interval in column.intervals if interval is not None and not math.isnan(interval.mean)]
    return tuple(np.quantile(means, (0, 0.25, 0.5, 0.75, 1)).tolist()) if means else (math.nan,) * 5


def _round(value: float) -> float | None:
    return None if math.isnan(value) else round(value, DECIMALS) + 0.0


def _json(value: Any) -> str:
    """Write JSON without the character that begins markup, so that it is safe anywhere in a page."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
