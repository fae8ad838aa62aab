"""A bundle is the same bytes wherever it is made, and refused where it is not as its manifest says."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import shotproof as sp
from shotproof.catalog.catalog import Catalog
from shotproof.cli.app import app
from shotproof.comparison.card import Card
from shotproof.core.errors import InputError
from shotproof.core.trust import NotTrusted
from shotproof.pipeline.bundle.bundle import MANIFEST, Bundle
from shotproof.pipeline.bundle.bundle_run import run_bundle
from shotproof.pipeline.bundle.write import bundle
from shotproof.pipeline.profile.profile import Profile

Contents = dict[str, bytes]


def contents_of(file: Path) -> Contents:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(path: Path, contents: Contents) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return path


def lying(contents: Contents, name: str, content: bytes) -> Contents:
    """With another file in place of one, and a manifest that has its SHA-256 and size."""
    manifest = json.loads(contents[MANIFEST])
    entry = manifest["files"].setdefault(name, {"kind": "text", "digest": None})
    entry |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    return {**contents, name: content, MANIFEST: json.dumps(manifest).encode()}


def saying(contents: Contents, change: Callable[[Any], object]) -> Contents:
    manifest = json.loads(contents[MANIFEST])
    change(manifest)
    return {**contents, MANIFEST: json.dumps(manifest).encode()}


def test_the_manifest_has_the_digests_of_all_files(bundled: Path) -> None:
    found = sp.read(bundled)
    assert isinstance(found, Bundle)
    contents = contents_of(bundled)
    assert set(found.files) == set(contents) - {MANIFEST}
    for name, file in found.files.items():
        assert file.sha256 == hashlib.sha256(contents[name]).hexdigest()
    assert found.methods == ("ncc", "ridge")
    assert found.names("card") == ["card.json"]
    assert found.names("data") == ["tree.csv"]
    assert {"shotproof", "python", "numpy", "torch"} <= set(found.versions)


def test_a_bundle_is_the_same_wherever_the_data_lies(profiled: Profile, bundled: Path, tmp_path: Path) -> None:
    shutil.copytree(profiled.folder.parent, tmp_path / "elsewhere" / "deeper")
    moved = tmp_path / "elsewhere" / "deeper" / profiled.folder.name
    bundle(moved, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == bundled.read_bytes()


def test_paths_start_from_the_root_that_is_given(profiled: Profile, bundled: Path, tmp_path: Path) -> None:
    data = profiled.folder.parent / "data"
    made = bundle(profiled.folder, tmp_path / "x.zip", root=data)
    assert made.paths_from == "data"
    for file, start in ((tmp_path / "x.zip", "shapes/"), (bundled, "")):
        with Bundle.unpacked(file) as (_, folder):
            paths = Catalog.read(folder / "catalog.parquet").table.column("path").to_pylist()
        root = data if start else data / "shapes"
        assert all(path.startswith(start) and (root / path).is_file() for path in paths)
    with pytest.raises(InputError, match=r"is outside of .*--root"):
        bundle(profiled.folder, tmp_path / "y.zip", root=profiled.folder)
    assert not (tmp_path / "y.zip").exists()


LIES: dict[str, tuple[Callable[[Contents], Contents], str]] = {
    "another SHA-256": (lambda c: {**c, "README.md": c["README.md"].replace(b"few", b"FEW")}, "states SHA-256"),
    "another size": (lambda c: {**c, "README.md": b"x"}, "'README.md': the manifest states [0-9]+ bytes, found 1"),
    "a file that is not named": (lambda c: {**c, "evil.py": b"x"}, "'evil.py' is not in the manifest"),
    "a file that is not there": (
        lambda c: {name: one for name, one in c.items() if name != "README.md"},
        "'README.md' is in the manifest, but not in the zip",
    ),
    "no manifest": (lambda c: {"README.md": b""}, f"has no {MANIFEST}"),
    "a manifest that is none": (lambda c: {**c, MANIFEST: b"[1]"}, "expected the manifest of a bundle"),
    "a newer format": (lambda c: saying(c, lambda m: m.update(format=2)), "format: expected 1, found 2"),
    "an unknown key": (lambda c: saying(c, lambda m: m.update(run="rm")), "run: unknown key"),
    "another kind of value": (lambda c: saying(c, lambda m: m.update(methods=3)), "methods: expected a list of text"),
    "another kind of file": (
        lambda c: saying(c, lambda m: m["files"]["README.md"].update(kind="code")),
        "kind: expected catalog or attributes",
    ),
    "no catalog": (
        lambda c: saying(c, lambda m: m["files"]["catalog.parquet"].update(kind="text")),
        "expected one catalog",
    ),
    "another digest": (
        lambda c: saying(c, lambda m: m["files"]["catalog.parquet"].update(digest="0")),
        "'catalog.parquet': the manifest states digest 0",
    ),
    "a task set that is none": (
        lambda c: lying(c, "tasks-random-2way-1shot.parquet", c["catalog.parquet"]),
        "expected a file of kind .tasks., found kind 'catalog'",
    ),
    "a path that climbs out": (lambda c: {**c, "../evil": b"x"}, r"'\.\./evil': expected a path"),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_is_not_as_the_manifest_says_is_refused_and_nothing_written(
    bundled: Path, tmp_path: Path, lie: str
) -> None:
    change, told = LIES[lie]
    file = zipped(tmp_path / "lie.zip", change(contents_of(bundled)))
    with pytest.raises(InputError, match=told):
        Bundle.read(file)
    with pytest.raises(InputError, match=told):
        run_bundle(file, tmp_path, encoder="pixels", output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_catalog_whose_paths_climb_out_is_refused(bundled: Path, tmp_path: Path) -> None:
    contents = contents_of(bundled)
    (tmp_path / "catalog.parquet").write_bytes(contents["catalog.parquet"])
    catalog = Catalog.read(tmp_path / "catalog.parquet")
    for path in ("../../etc/passwd", "/etc/passwd"):
        column = pa.array([path] * len(catalog))
        table = catalog.table.set_column(catalog.table.column_names.index("path"), "path", column)
        Catalog(table, tmp_path, catalog.record).write(tmp_path / "x.parquet")
        lie = lying(contents, "catalog.parquet", (tmp_path / "x.parquet").read_bytes())
        with pytest.raises(InputError, match=f"column 'path', '{path}': expected a path"):
            Bundle.read(zipped(tmp_path / "lie.zip", lie))


def test_a_card_of_other_tasks_is_refused(bundled: Path, tmp_path: Path) -> None:
    contents = contents_of(bundled)
    digest = Card.from_json(json.loads(contents["card.json"])).axes[0].tasks.digest
    lie = lying(contents, "card.json", contents["card.json"].replace(digest.encode(), b"0" * len(digest)))
    with pytest.raises(InputError, match=r"'card.json', random-1-shot: its tasks, 0+, are not in the bundle"):
        Bundle.read(zipped(tmp_path / "lie.zip", lie))


def test_the_command_writes_and_verifies(profiled: Profile, bundled: Path, tmp_path: Path) -> None:
    file = tmp_path / "shapes.zip"
    made = CliRunner().invoke(app, ["share", "bundle", str(profiled.folder), "-o", str(file), "--trust"])
    assert made.exit_code == 0, made.output
    assert file.read_bytes() == bundled.read_bytes()
    verified = CliRunner().invoke(app, ["share", "verify", str(file)])
    assert "all files are present" in verified.output
    printed = CliRunner().invoke(app, ["show", str(file), "--json"])
    assert Bundle.from_json(json.loads(printed.output)) == Bundle.read(file)


def test_a_mixture_of_files_elsewhere_is_refused_whatever_the_catalog_says_of_its_columns(
    bundled: Path, tmp_path: Path
) -> None:
    contents = contents_of(bundled)
    catalog = pq.read_table(pa.BufferReader(contents["catalog.parquet"]))
    rows = len(catalog)
    catalog = catalog.set_column(catalog.column_names.index("path"), "path", pa.array([""] * rows))
    for name, value in (("foreground", "/elsewhere/private.wav"), ("background", "b.wav")):
        catalog = catalog.append_column(name, pa.array([value] * rows))
    written = pa.BufferOutputStream()
    pq.write_table(catalog, written)
    lie = lying(contents, "catalog.parquet", written.getvalue().to_pybytes())
    with pytest.raises(InputError, match=r"column 'foreground', '/elsewhere/private.wav': expected a path"):
        Bundle.read(zipped(tmp_path / "lie.zip", lie))


@pytest.mark.strangers
def test_a_file_outside_of_the_runs_folder_is_packed_only_if_the_user_agrees(profiled: Profile, tmp_path: Path) -> None:
    tree = profiled.folder.parent / "tree.csv"  # by which tasks were drawn
    with pytest.raises(NotTrusted, match=r"sampler 'semantic' reads .*tree.csv") as refused:
        bundle(profiled.folder, tmp_path / "x.zip")
    assert not (tmp_path / "x.zip").exists()
    assert tree.name in bundle(profiled.folder, tmp_path / "x.zip", trust=[refused.value.description]).files


@pytest.mark.strangers
def test_a_link_out_of_the_runs_folder_is_not_below_it(profiled: Profile, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(profiled.folder, folder)
    (folder / "tree.csv").symlink_to(profiled.folder.parent / "tree.csv")
    for file in folder.glob("tasks-semantic*.parquet"):
        tasks = sp.TaskSet.read(file)
        assert tasks.record.sampler is not None
        beside = {**tasks.record.sampler.options, "class_distances": str(folder / "tree.csv")}
        sp.TaskSet(tasks.table, replace(tasks.record, sampler=replace(tasks.record.sampler, options=beside))).write(
            file
        )
    with pytest.raises(NotTrusted, match="sampler 'semantic' reads"):
        bundle(folder, tmp_path / "x.zip")
    (folder / "tree.csv").unlink()
    shutil.copy(profiled.folder.parent / "tree.csv", folder)
    assert "tree.csv" in bundle(folder, tmp_path / "x.zip").files


def test_a_record_of_a_run_names_no_files_elsewhere(profiled: Profile, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(profiled.folder, folder)
    record = json.loads((folder / "run.json").read_text())
    for name in ("../catalog.parquet", "/etc/passwd", "s3://bucket/x.parquet"):
        (folder / "run.json").write_text(json.dumps({**record, "current": [*record["current"], name]}))
        with pytest.raises(InputError, match="is outside"):
            bundle(folder, tmp_path / "x.zip")


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contains no run"):
        bundle(tmp_path, tmp_path / "x.zip")
    with pytest.raises(InputError, match="is not a folder"):
        bundle(tmp_path / "none", tmp_path / "x.zip")
    for given in (["x.zip"], ["x.zip", "-o", "y"], ["x.zip", "--upload", "me/birds", "--root", "y"]):
        refused = CliRunner().invoke(app, ["share", "bundle", *given]).exception
        assert "expected only --upload" in str(refused)
