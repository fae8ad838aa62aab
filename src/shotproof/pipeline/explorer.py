"""Explorer of a run folder: served to a browser on this machine, or written as static files."""

from __future__ import annotations

import contextlib
import os
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.analysis.explored_tasks import CONTEXT, explored_tasks
from shotproof.analysis.inputs import Inputs
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.changed_catalog import with_changes
from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import current_runtime
from shotproof.core.storage.files import is_folder, path_exists
from shotproof.core.storage.whole_files import whole_file
from shotproof.core.tables import check_replaceable, whole_column
from shotproof.pipeline.read import files_by_kind
from shotproof.report.explorer.explorer_site import INDEX, ExploredSet, Site
from shotproof.report.explorer.server import ExplorerServer
from shotproof.results.answers import AnsweredTasks, answers_on, results_on
from shotproof.results.origin import Origin, design_name, labels_of
from shotproof.results.results import Results
from shotproof.tasks.taskset import SIDES, UNCHANGED_ITEM, TaskSet, change_column

PORT = 8421


def view(
    folder: str | Path,
    *,
    port: int | None = None,
    open_page: bool = True,
    export: str | Path | None = None,
    log: Callable[[str], None] = print,
) -> None:
    """Show every task of a run in a browser, served to this machine only until Ctrl-C; or write static files.

    Args:
        folder: output folder of `shotproof run`, or any folder with catalogs, task sets and results
        port: port on this machine, by default 8421; 0 means any free port
        open_page: whether to open the page in a browser
        export: folder for static files; nothing is served if it is given
        log: called with the address, or with a summary of what was written

    Returns:
        None, after Ctrl-C or once all files are written.

    Raises:
        InputError: the folder contains no run, the port is in use, or the export folder contains other files.

    Example:
        >>> import tempfile, shotproof as sp
        >>> folder = Path(tempfile.mkdtemp())
        >>> catalog, features, _ = sp.worlds.GaussianWorld().draw(classes=6, items=40)
        >>> tasks = sp.sample(catalog, "random", tasks=5)
        >>> results = sp.evaluate(tasks, features, "ncc")
        >>> for name, table in {"catalog": catalog, "tasks": tasks, "results": results}.items():
        ...     table.write(folder / f"{name}.parquet")
        >>> sp.view(folder, export=folder / "page", log=lambda line: None)
        >>> (folder / "page" / "index.html").is_file()
        True
    """
    site = read_site(folder)
    if export is not None:
        files = write_site(site, Path(export))
        log(f"{export}: {files:,} files for any web server, e.g. python -m http.server -d {export}")
        return
    with ExplorerServer(site, PORT if port is None else port) as server:
        log(f"{server.url} (press Ctrl-C to stop)")
        if open_page:
            webbrowser.open(server.url)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()


def read_site(folder: str | Path) -> Site:
    """Read all evaluated task sets of a run folder.

    Args:
        folder: output folder of `shotproof run`, or any folder with catalogs, task sets and results

    Returns:
        The explorer's site, whose files are generated on request.

    Raises:
        InputError: the path is not a folder, contains no run, or has no results for its task sets.
    """
    folder = Path(folder)
    if not is_folder(folder):
        problem = "is a file" if path_exists(folder) else "does not exist"
        raise InputError(f"{folder} {problem}: expected a run folder, such as birds-results/")
    files = files_by_kind(folder)
    results = [Results.read(file) for file in files.get("results", [])]
    catalogs = [Catalog.read(file) for file in files.get("catalog", [])]
    inputs = Inputs(catalogs=catalogs, attributes=[Attributes.read(file) for file in files.get("attributes", [])])
    origins = [Origin.of(candidate) for candidate in results]
    designs = list({origin.design: None for origin in origins})
    labels = labels_of(origins)
    names = [f"{label}, {design_name(origin.design, designs)}" for origin, label in zip(origins, labels, strict=True)]
    names_and_seeds = {(name, origin.seed) for origin, name in zip(origins, names, strict=True)}
    with_changed = _with_changed_items(catalogs, files.get("tasks", []))
    sets: list[ExploredSet] = []
    for file in files.get("tasks", []):  # one at a time: item names take much memory
        tasks = TaskSet.read(file)
        task_results = results_on(tasks, results)
        if task_results:
            name = names[next(index for index, candidate in enumerate(results) if candidate is task_results[0])]
            has_replicates = sum(other_name == name for other_name, _ in names_and_seeds) > 1
            key = os.path.relpath(file.with_suffix(""), folder).removeprefix("tasks-")
            unique_name = f"{name}, seed {tasks.record.seed}" if has_replicates else name
            sets.append(_explore_set(key, unique_name, answers_on(tasks, task_results), inputs, with_changed))
    if not sets:
        raise InputError(
            f"{folder} has no results for its task sets: evaluate them first (shotproof run or shotproof evaluate)"
        )
    site = Site(folder.resolve().name, sets, with_changed)
    del tasks, task_results, results
    pa.default_memory_pool().release_unused()  # the tables take as much memory as everything else
    return site


def write_site(site: Site, folder: Path) -> int:
    """Write an explorer as static files for any web server, and return the number of files.

    Items that cannot be read are left out; the page shows their names.
    """
    check_replaceable(folder, [INDEX], "an earlier export")
    paths = list(site.paths())
    with current_runtime().progress_bar("writing", len(paths)) as advance:
        for path in paths:
            content = site.content(path)
            if content is not None:
                with whole_file(folder / path) as temporary:
                    temporary.write_bytes(content)
            advance(1)
    return len(paths)


def _with_changed_items(catalogs: Sequence[Catalog], task_files: Sequence[Path]) -> list[Catalog]:
    """Return the catalogs with the changed items of all task sets after their own, whose rows stay the same."""
    pairs: dict[str | None, list[tuple[pa.Array, pa.Array]]] = {}
    for file in task_files:
        tasks = TaskSet.read(file)
        for side in SIDES:
            spellings = tasks.changes(side)
            if spellings is not None:
                items = pc.list_flatten(tasks.table.column(side))
                is_changed = pc.not_equal(spellings, UNCHANGED_ITEM)
                drawn_from = pairs.setdefault(tasks.record.source("catalog"), [])
                drawn_from.append((items.filter(is_changed), spellings.filter(is_changed)))
    return [
        with_changes(catalog, pairs[catalog.digest]) if catalog.digest in pairs else catalog for catalog in catalogs
    ]


def _with_changed_names(answered: AnsweredTasks) -> AnsweredTasks:
    """Return tasks with their items named as they are shown to a classifier: with their changes."""
    tasks = answered.tasks
    table = tasks.table
    for side in SIDES:
        if tasks.changes(side) is not None:
            ends = pc.list_value_length(table.column(side)).to_numpy().cumsum()
            names = whole_column(tasks.item_names(side))
            column = pa.ListArray.from_arrays(pa.array([0, *ends], pa.int32()), names)
            table = table.set_column(table.column_names.index(side), side, column).drop_columns(change_column(side))
    return AnsweredTasks(TaskSet(table, tasks.record), answered.answers)


def _explore_set(
    key: str, name: str, answered: AnsweredTasks, inputs: Inputs, with_changed: Sequence[Catalog]
) -> ExploredSet:
    """Prepare a task set for the explorer; `with_changed` are the catalogs with changed items, in the same order."""
    catalog = inputs.catalog_of(answered.tasks)
    place = next((index for index, candidate in enumerate(inputs.catalogs) if candidate is catalog), None)
    attributes = inputs.attributes_of(answered.tasks)
    if answered.tasks.is_changed:  # attributes were found in the items as they are
        answered, attributes = _with_changed_names(answered), None
    explored = explored_tasks(answered, None if place is None else with_changed[place], attributes)
    column = answered.tasks.record.context_column or CONTEXT
    return ExploredSet(key, name, explored, place, column.replace("_", " ") if explored.context.names else None)
