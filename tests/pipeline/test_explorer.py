from __future__ import annotations

import json
from pathlib import Path

import pytest

from shotproof.core.errors import InputError
from shotproof.pipeline.explorer import read_site, write_site
from tests.changed_run import make_changed_run
from tests.explored_run import write_run
from tests.report_files import make_catalog, make_tasks


def test_an_export_has_the_files_that_would_be_served(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    write_run(run)
    (run / "0-3.png").write_text("broken")
    site = read_site(run)
    write_site(site, tmp_path / "out")
    written = {
        file.relative_to(tmp_path / "out").as_posix() for file in (tmp_path / "out").rglob("*") if file.is_file()
    }
    assert written == set(site.paths()) - {"items/0/3.jpg"}
    for path in written:
        assert (tmp_path / "out" / path).read_bytes() == site.content(path)
    write_site(site, tmp_path / "out")  # an earlier export is written over


def test_an_export_does_not_mix_with_other_files(tmp_path: Path) -> None:
    site = read_site(write_run(tmp_path))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="expected a new folder"):
        write_site(site, tmp_path / "out")


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist: expected a run folder"):
        read_site(tmp_path / "nowhere")
    with pytest.raises(InputError, match="contains no run"):
        read_site(tmp_path)
    catalog = make_catalog(tmp_path)
    catalog.write(tmp_path / "catalog.parquet")
    with pytest.raises(InputError, match="is a file: expected a run folder"):
        read_site(tmp_path / "catalog.parquet")
    make_tasks(catalog).write(tmp_path / "tasks.parquet")
    with pytest.raises(InputError, match="no results"):
        read_site(tmp_path)


def test_changed_items_are_shown_as_the_classifier_saw_them(tmp_path: Path) -> None:
    run = make_changed_run(tmp_path / "pictures", tasks=3)
    site = read_site(run.write(tmp_path / "run"))
    names = [task_set.name for task_set in site.sets]
    part = json.loads(site.content(f"data/{names.index('mixed-rival, 3-way 2-shot')}/tasks-0.json") or b"")
    rows = {name: row for name, row, _ in part["items"].values()}
    changed = {name for name in rows if "@ mixed-rival(" in name}
    queries = run.of("mixed-rival").item_names("query").to_pylist()
    assert changed == set(queries)
    first = queries[0]
    before = run.catalog.items.index(first.partition(" @ ")[0])
    assert site.content(f"items/0/{rows[first]}.jpg") not in (None, site.content(f"items/0/{before}.jpg"))
    assert all(row is not None for row in rows.values())
    (tmp_path / "pictures" / run.catalog.table.column("path")[before].as_py()).write_text("broken")
    reread = read_site(tmp_path / "run")
    assert reread.content(f"items/0/{rows[first]}.jpg") is None
