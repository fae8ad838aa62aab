"""Leaderboard of a folder with cards and results; submitting means adding a file.

sp.leaderboard("submissions", "site")
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from shotproof.comparison.card import CARD_FILE, Card
from shotproof.comparison.leaderboard import Leaderboard, make_leaderboard
from shotproof.comparison.leaderboard_rows import (
    Measurement,
    ResultsFile,
    measure_card,
    measure_results,
    require_same_rows,
)
from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import current_runtime
from shotproof.core.storage.files import is_folder
from shotproof.core.storage.whole_files import whole_folder
from shotproof.core.tables import check_replaceable
from shotproof.pipeline.file_kinds import kind_of
from shotproof.pipeline.read import files_of
from shotproof.pipeline.steps.steps import MANIFEST
from shotproof.report.leaderboard.leaderboard_site import DATA, INDEX, site_files
from shotproof.results.encoder_names import short_encoder_names
from shotproof.results.evaluated import check_metric
from shotproof.results.origin import Origin
from shotproof.results.results import Results
from shotproof.stats.intervals import check_intervals, check_level
from shotproof.tasks.taskset import TaskSet


def leaderboard(
    folder: str | Path,
    output: str | Path | None = None,
    *,
    interval: str | None = None,
    level: float = 0.95,
    metric: str = "acc",
    title: str = "Leaderboard",
) -> Leaderboard:
    """Rank all classifiers whose cards and results are in a folder, and write a static site.

    Classifiers are compared on the same task sets, identified by digest: those of the task files in the folder, or, if
    there are none, those that most classifiers were evaluated on. Results are compared task by task, and so are cards
    if they contain accuracies per task.

    Args:
        folder: folder with cards (JSON), results and task sets (Parquet), run folders and profile folders, at any depth
        output: folder of the site, which is replaced entirely; None means nothing is written
        interval: interval for the ranks: `images`, which cards have, or `sampler`; by default, on each axis, `images`
            if all classifiers have it
        level: confidence level of the intervals
        metric: metric shown first, `acc` or `wacc`
        title: title of the site

    Returns:
        The leaderboard.

    Raises:
        Mismatch: a file is on other task sets, or two files disagree about a classifier.
        InputError: the folder has no classifier, or a file cannot be used; the message names it.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> import shotproof as sp
        >>> catalog = sp.worlds.ShapesWorld(classes=6, items=30).catalog()
        >>> values = np.random.default_rng(0).normal(size=(len(catalog), 8))
        >>> features = sp.Features.from_array(list(catalog.items), values)
        >>> tasks = sp.sample(catalog, "random", tasks=50)
        >>> folder = Path(tempfile.mkdtemp())
        >>> for method in ("ncc", "knn"):
        ...     sp.evaluate(tasks, features, method).write(folder / f"{method}.parquet")
        >>> board = sp.leaderboard(folder, folder / "site")
        >>> [(entry.classifier.method, str(rank)) for entry, rank in zip(board.entries, board.columns[0].ranks)]
        [('knn', '1 to 2 of 2'), ('ncc', '1 to 2 of 2')]
    """
    folder, checked_metric = Path(folder), check_metric(metric)
    check_level(level)
    if interval is not None:
        check_intervals([interval])
    if output is not None:
        check_replaceable(Path(output), [INDEX, DATA], "an earlier site")
    if not is_folder(folder):
        raise InputError(f"{folder} is not a folder: expected one with cards and results")
    measured, tasks = _read_submissions(folder)
    board = make_leaderboard(
        measured,
        interval=interval,
        level=level,
        metric=checked_metric,
        tasks=frozenset(task_set.digest for task_set in tasks),
    )
    if output is not None:
        write_site(board, title, Path(output))
    return board


def _read_submissions(folder: Path) -> tuple[list[Measurement], list[TaskSet]]:
    """Read the measurements in all files, and the task sets shared by all classifiers."""
    measured: list[Measurement] = []
    results: list[ResultsFile] = []
    tasks: list[TaskSet] = []
    files = list(_find_files(folder))
    with current_runtime().progress_bar("reading", len(files)) as advance:
        for path, is_from_run in files:
            name = path.relative_to(folder).as_posix()
            if path.suffix == ".json":
                measured += measure_card(Card.read(path), name)
            elif (kind := kind_of(path)) == "results":
                results.append(ResultsFile(name, Results.read(path)))
            elif kind == "tasks" and not is_from_run:
                tasks.append(TaskSet.read(path))
            advance(1)
    require_same_rows(results, tasks)
    names = short_encoder_names(Origin.of(results_file.results).encoder for results_file in results)
    return [*measured, *measure_results(results, names)], tasks


def _find_files(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Yield cards and Parquet files in order, each with whether it belongs to a run, whose task sets are not shared."""
    if (folder / MANIFEST).is_file():
        yield from ((path, True) for path in [*files_of(folder), folder / CARD_FILE] if path.is_file())
        return
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir() and not path.is_symlink():  # links may form a cycle
            yield from _find_files(path)
        elif path.suffix in (".json", ".parquet"):
            yield path, False


def write_site(board: Leaderboard, title: str, output: Path) -> None:
    """Write the site of a leaderboard, completely or not at all."""
    with whole_folder(output) as site_folder, current_runtime().progress_bar("writing", len(board.entries)) as advance:
        for path, text in site_files(board, title):
            (site_folder / path).parent.mkdir(exist_ok=True)
            (site_folder / path).write_text(text, encoding="utf-8", newline="\n")
            advance(1)
