"""A run's folder as an explorer: served to a browser of this machine, or written as static files."""

from __future__ import annotations

import contextlib
import os
import webbrowser
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from shotproof.analysis.explored_tasks import CONTEXT, explored_tasks
from shotproof.analysis.inputs import Inputs
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import current_runtime
from shotproof.core.storage.files import is_folder, is_there
from shotproof.core.storage.whole_files import whole_file
from shotproof.core.tables import check_replaceable
from shotproof.pipeline.read import files_by_kind
from shotproof.report.explorer.explorer_site import INDEX, ExploredSet, Site
from shotproof.report.explorer.server import ExplorerServer
from shotproof.results.answers import AnsweredTasks, answers_on, results_on
from shotproof.results.origin import Origin, design_name, labels_of
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet

PORT = 8421


def view(
    folder: str | Path,
    *,
    port: int | None = None,
    open_page: bool = True,
    export: str | Path | None = None,
    tell: Callable[[str], None] = print,
) -> None:
    """Show every task of a run in a browser: served to this machine alone, until Ctrl-C; or written as static files.

    Args:
        folder: that `shotproof run` has written, or any with catalogs, task sets and results
        port: of this machine, by default 8421; 0 takes one that is free
        open_page: open it in a browser
        export: write the page as static files to this folder, and serve nothing
        tell: receives the address, or what was written

    Returns:
        Nothing: when Ctrl-C has ended it, or when all files are written.

    Raises:
        InputError: the folder has no run in it, the port is in use, or the folder to export to holds other files.

    Example:
        >>> import tempfile, shotproof as sp
        >>> folder = Path(tempfile.mkdtemp())
        >>> catalog, features, _ = sp.worlds.GaussianWorld().draw(classes=6, items=40)
        >>> tasks = sp.sample(catalog, "random", tasks=5)
        >>> results = sp.evaluate(tasks, features, "ncc")
        >>> for name, one in {"catalog": catalog, "tasks": tasks, "results": results}.items():
        ...     one.write(folder / f"{name}.parquet")
        >>> sp.view(folder, export=folder / "page", tell=lambda line: None)
        >>> (folder / "page" / "index.html").is_file()
        True
    """
    site = read_site(folder)
    if export is not None:
        files = write_site(site, Path(export))
        tell(f"{export}: {files:,} files for any web server, e.g. python -m http.server -d {export}")
        return
    with ExplorerServer(site, PORT if port is None else port) as server:
        tell(f"{server.url} (Ctrl-C ends it)")
        if open_page:
            webbrowser.open(server.url)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()


def read_site(folder: str | Path) -> Site:
    """All task sets of a run's folder that were evaluated.

    Args:
        folder: that `shotproof run` has written, or any with catalogs, task sets and results

    Returns:
        The explorer's files, made when they are asked for.

    Raises:
        InputError: it is no folder, has no run in it, or no results on its task sets.
    """
    folder = Path(folder)
    if not is_folder(folder):
        what = "is a file" if is_there(folder) else "does not exist"
        raise InputError(f"{folder} {what}: expected the folder of a run, such as birds-results/")
    files = files_by_kind(folder)
    results = [Results.read(file) for file in files.get("results", [])]
    catalogs = [Catalog.read(file) for file in files.get("catalog", [])]
    inputs = Inputs(catalogs=catalogs, attributes=[Attributes.read(file) for file in files.get("attributes", [])])
    origins = [Origin.of(given) for given in results]
    designs = list({origin.design: None for origin in origins})
    labels = labels_of(origins)
    names = [f"{label}, {design_name(one.design, designs)}" for one, label in zip(origins, labels, strict=True)]
    drawn = {(name, one.seed) for one, name in zip(origins, names, strict=True)}
    sets: list[ExploredSet] = []
    for file in files.get("tasks", []):  # one after the other: the names of their items are large
        tasks = TaskSet.read(file)
        own = results_on(tasks, results)
        if own:
            name = names[next(place for place, given in enumerate(results) if given is own[0])]
            several = sum(other == name for other, _ in drawn) > 1
            key = os.path.relpath(file.with_suffix(""), folder).removeprefix("tasks-")
            told_apart = f"{name}, seed {tasks.record.seed}" if several else name
            sets.append(_explored(key, told_apart, answers_on(tasks, own), inputs))
    if not sets:
        raise InputError(f"{folder} has no results on its task sets: evaluate them first (shotproof run, evaluate)")
    site = Site(folder.resolve().name, sets, catalogs)
    del tasks, own, results
    pa.default_memory_pool().release_unused()  # the tables that were read are as large as all else
    return site


def write_site(site: Site, folder: Path) -> int:
    """Write an explorer as static files, for any web server; the number of files.

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


def _explored(key: str, name: str, answered: AnsweredTasks, inputs: Inputs) -> ExploredSet:
    catalog = inputs.catalog_of(answered.tasks)
    explored = explored_tasks(answered, catalog, inputs.attributes_of(answered.tasks))
    column = answered.tasks.record.context_column or CONTEXT
    return ExploredSet(
        key,
        name,
        explored,
        None if catalog is None else next(place for place, one in enumerate(inputs.catalogs) if one is catalog),
        column.replace("_", " ") if explored.context.names else None,
    )
