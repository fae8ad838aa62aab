from __future__ import annotations

from pathlib import Path

import pytest

from shotproof.core.errors import InputError
from shotproof.pipeline.explorer import read_site, write_site
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
    with pytest.raises(InputError, match="other files: expected a new folder"):
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
    with pytest.raises(InputError, match="no results for its task sets"):
        read_site(tmp_path)
