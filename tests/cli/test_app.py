"""The command line as a user meets it: the whole flow, and one line for whatever is wrong."""

from __future__ import annotations

import json
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.cli.app import COMMANDS, main
from shotproof.worlds.shapes import ShapesWorld

Shotproof = Callable[..., tuple[int, str, str]]


@pytest.fixture
def shotproof(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shotproof:
    """Run a command in this process: exit status, standard output, standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["shotproof", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with images in class folders, a catalog and attributes."""
    folder, shapes = tmp_path_factory.mktemp("drawn"), ShapesWorld(classes=6, items=16, size=32)
    shapes.write(folder / "images").write(folder / "catalog.parquet")
    shapes.attributes().write(folder / "attributes.parquet")
    return folder


@pytest.fixture
def world(drawn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Such a folder, which is also the working directory."""
    shutil.copytree(drawn, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHOTPROOF_CACHE", str(tmp_path / "cache"))
    return tmp_path


SAMPLE = ["sample", "catalog.parquet", "--way", 3, "--shot", 2, "--query", 4, "--tasks", 20, "-o", "tasks.parquet"]
FEWSTAB = [*SAMPLE, "attributes.parquet"]


def test_from_a_folder_of_images_to_a_report(shotproof: Shotproof, world: Path) -> None:
    flow: list[list[Any]] = [
        ["catalog", "images", "--layout", "folder", "-o", "c.parquet"],
        ["catalog", "c.parquet", "--check", "--way", 3, "--shot", 2, "--query", 4],
        ["detect", "c.parquet", "--detector", "photometric", "-o", "a.parquet", "--workers", 1],
        ["encode", "c.parquet", "--encoder", "pixels", "-o", "f.parquet", "--workers", 1],
    ]
    for sampler in ("random", "fewstab"):
        words = ["a.parquet"] if sampler == "fewstab" else []
        tasks = f"{sampler}.parquet"
        design = ["--way", 3, "--shot", 2, "--query", 4, "--tasks", 20]
        flow.append(["sample", "c.parquet", *words, "--sampler", sampler, *design, "-o", tasks])
        flow.append(["share", "verify", tasks, "c.parquet", *words])
        flow.append(["evaluate", tasks, "f.parquet", "--method", "ncc", "-o", f"results-{tasks}"])
    files = ["random.parquet", "fewstab.parquet", "c.parquet"]
    flow.append(["sample", "c.parquet", "--sampler", "placebo", "--like", "fewstab.parquet", "-o", "placebo.parquet"])
    flow.append(["share", "verify", "placebo.parquet", "c.parquet"])
    flow.append(["compare", "results-random.parquet", "results-fewstab.parquet", *files, "-o", "report.html", "--json"])
    for command in flow:
        status, out, err = shotproof(*command)
        assert (status, err) == (0, ""), (command, out, err)
    assert {row["method"] for row in json.loads(out)["estimates"]} == {"ncc"}
    assert (world / "report.html").stat().st_size > 10_000


def test_one_command_on_a_folder_of_images(shotproof: Shotproof, world: Path) -> None:
    ShapesWorld(classes=6, items=30, size=32).write(world / "my shapes" / "test")
    ShapesWorld(classes=2, items=2, size=32).write(world / "my shapes" / "train")
    before = sorted(world.rglob("*"))
    status, _, err = shotproof("run", "my shapes", "--dry-run")
    assert status == 0
    assert "would write  features-lite0.parquet" in err
    assert sorted(world.rglob("*")) == before
    flags = ["--encoder", "pixels", "--method", "ncc", "--method", "knn", "--tasks", 10]
    status, out, err = shotproof("run", "my shapes", *flags)
    assert status == 0
    experiment = world / "my shapes-results" / "experiment.toml"
    assert 'split = "test"' in experiment.read_text()
    assert "ncc on pixels" in out
    assert len(err.splitlines()) == 8  # the experiment's file, and seven steps
    assert not re.search(r"[0-9a-f]{6}", err)
    assert (world / "my shapes-results" / "report.html").exists()
    changed = experiment.read_text().replace("tasks = 10", "tasks = 12")
    experiment.write_text(changed)
    status, _, err = shotproof("run", "my shapes", "--verbose")
    assert status == 0
    assert experiment.read_text() == changed
    assert "up to date   features-pixels.parquet" in err


def test_results_of_other_data_are_not_taken_for_those_of_this(shotproof: Shotproof, world: Path) -> None:
    for name in ("A", "B"):
        ShapesWorld(classes=5, items=10, size=16).write(world / name / "pics")
    flags = ["--encoder", "pixels", "--method", "ncc", "--tasks", 5, "--skip-small"]
    status, _, err = shotproof("run", "A/pics", *flags)
    assert (status, "too small" in err) == (2, False)  # no class has the 16 items that a task takes
    assert "5 ways need at least 5 classes, the data has 0" in err
    for command in (["run", "B/pics"], ["run", "B/pics", "--dry-run"], ["run", "B/pics", *flags]):
        status, _, err = shotproof(*command)
        assert status == 2
        assert re.search(r"belongs to .*A/pics, but this is .*B/pics", err)
        assert "--output" in err
    assert shotproof("run", "B/pics", "--dry-run", "-o", "other", "--encoder", "pixels")[0] == 2


def test_an_experiment_can_be_run_into_another_folder(shotproof: Shotproof, world: Path) -> None:
    (world / "experiment.toml").write_text(
        '[catalog]\nfile = "catalog.parquet"\n[features]\nencoders = ["pixels"]\n'
        '[tasks]\nway = 3\nshots = [1]\nquery = 4\ntasks = 5\nsamplers = ["random"]\n'
        '[evaluate]\nmethods = ["ncc"]\n[output]\nintervals = ["sampler"]\n'
    )
    status, _, err = shotproof("run", "experiment.toml", "-o", "other")
    assert (status, (world / "other" / "report.html").exists()) == (0, True), err
    assert not (world / "experiment-results").exists()


def test_flags_of_a_folder_are_refused_where_they_would_be_ignored(shotproof: Shotproof, world: Path) -> None:
    (world / "experiment.toml").write_text('[catalog]\nfile = "catalog.parquet"\n')
    for flags in (["--encoder", "pixels"], ["--method", "ncc"], ["--tasks", 5], ["--skip-bad"], ["--skip-small"]):
        status, _, err = shotproof("run", "experiment.toml", *flags)
        assert (status, "experiment file" in err) == (2, True)
    (world / "birds.zip").touch()
    for flags in (["--tasks", 5], ["--skip-bad"], ["--dry-run"], ["--encoder", "pixels", "--encoder", "lite0"]):
        status, _, err = shotproof("run", "birds.zip", *flags)
        assert (status, "is a bundle" in err) == (2, True)


def test_placebos_can_be_left_out_of_a_run(shotproof: Shotproof, world: Path) -> None:
    (world / "experiment.toml").write_text(
        '[catalog]\nfile = "catalog.parquet"\n[attributes]\nfile = "attributes.parquet"\n'
        '[features]\nencoders = ["pixels"]\n[tasks]\nway = 3\nshots = [1]\nquery = 4\ntasks = 5\n'
    )
    asked: dict[tuple[str, ...], bool] = {(): True, ("--no-placebo",): False, ("--placebo",): True}
    for options, expected in asked.items():
        status, _, err = shotproof("run", "experiment.toml", "--dry-run", *options)
        assert status == 0
        assert "would write  tasks-fewstab-3way-1shot.parquet" in err
        assert ("would write  tasks-placebo-of-fewstab-3way-1shot.parquet" in err) == expected


def test_every_verb_has_help(shotproof: Shotproof) -> None:
    status, out, _ = shotproof("--help")
    verbs = {line.split()[1] for line in out.splitlines() if line.startswith("│ ") and "--" not in line.split()[1]}
    assert status == 0
    assert {name.split()[0] for name in COMMANDS} <= verbs
    for name in COMMANDS:
        status, out, _ = shotproof(*name.split(), "--help")
        assert status == 0
        assert f"shotproof {name}" in out
    assert shotproof("share")[1] == shotproof("share", "--help")[1]


def test_there_are_few_doors() -> None:
    start, work = "demo run profile cure doctor", "catalog mix detect encode train sample evaluate compare explain"
    doors = f"{start} {work} view gate share show"
    assert {name.split()[0] for name in COMMANDS} == set(doors.split())


def test_runtime_flags_stand_anywhere(shotproof: Shotproof, world: Path) -> None:
    encode = ["encode", "catalog.parquet", "--encoder", "pixels", "-o", "f.parquet"]
    for number, where in enumerate(("before", "after", "joined")):
        cache = ["--cache", where] if where != "joined" else [f"--cache={where}"]
        typed = [*cache, "--no-progress", *encode] if number == 0 else [*encode, "--workers", 1, *cache]
        assert shotproof(*typed)[0] == 0
        assert (world / where).is_dir()
    assert not (world / "cache").exists()


def test_runtime_flags_go_before_what_the_experiment_says(shotproof: Shotproof, world: Path) -> None:
    sections = {"catalog": 'file = "catalog.parquet"', "features": 'encoders = ["pixels"]', "runtime": 'cache = "own"'}
    tasks = 'samplers = ["random"]\nway = 2\nshots = [1]\nquery = 1\ntasks = 4'
    sections |= {"tasks": tasks, "evaluate": 'methods = ["ncc"]', "output": 'intervals = ["sampler"]'}
    text = "\n".join(f"[{name}]\n{keys}" for name, keys in sections.items())
    (world / "experiment.toml").write_text(text, encoding="utf-8")
    assert shotproof("run", "experiment.toml", "--cache", "typed", "-o", "out")[0] == 0
    assert (world / "typed").is_dir()
    assert not (world / "own").exists()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            ["sample", "katalog.parquet", "--sampler", "random", "-o", "tasks.parquet"],
            "does not exist: did you mean 'catalog.parquet'",
        ),
        ([*SAMPLE, "--sampler", "fewstap"], "did you mean 'fewstab'"),
        ([*FEWSTAB, "--split", "alll"], "did you mean 'all'"),
        ([*FEWSTAB, "--way", 7], "7 ways need at least 7 classes, the data has 6"),
        ([*FEWSTAB, "--query", 15], "has 16 items, a task needs 17 of each class"),
        ([*FEWSTAB, "--sampler", "fewstab(support='exclusve')"], "did you mean 'exclusive'"),
        ([*SAMPLE], "needs attributes: add attributes.parquet"),
        ([*SAMPLE, "--sampler", "random(shots=5)"], "has no option 'shots': 'shot' is an argument"),
        ([*SAMPLE, "--shots", 5], "--shot"),
        (["show", "sampler-s"], "is named 'sampler-s'"),
        (["show", "hardst"], "did you mean 'hardest'"),
        (["run"], "Missing argument 'experiment'"),
        (["explain", "hardnes"], "Did you mean 'hardness'"),
        (["compare", "catalog.parquet", "--workers"], "--workers: expected a value"),
        (["--workers", "many", "doctor"], "--workers"),
        (["compare", "catalog.parquet", "-o", "x.pdf"], "--figures"),
        ([*SAMPLE, "catalog.parquet"], "both hold a catalog"),
        ([*SAMPLE, "--way", "many"], "--way"),
        (["catalog", "images", "--layout", "foldr", "-o", "x.parquet"], "did you mean 'folder'"),
        (["detect", "catalog.parquet", "--detector", "fotometric", "-o", "x.parquet"], "did you mean 'photometric'"),
        (["encode", "catalog.parquet", "--encoder", "pixel", "-o", "x.parquet"], "did you mean 'pixels'"),
        (["evaluate", "catalog.parquet", "-o", "x.parquet"], "expected tasks.parquet"),
        (["compare", "catalog.parquet", "-o", "x.html"], "no results to compare"),
        (["run", "experiment.toml"], "experiment file experiment.toml does not exist"),
        (["smaple"], "Did you mean 'sample'"),
        (["sample", "--no-such-option"], "No such option"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    shotproof: Shotproof, world: Path, command: list[Any], message: str
) -> None:
    before = sorted(path.name for path in world.iterdir())
    status, out, err = shotproof(*command)
    assert (status, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err
    assert sorted(path.name for path in world.iterdir()) == before


def test_attributes_of_other_items(shotproof: Shotproof, world: Path) -> None:
    Attributes.from_words({"elsewhere.png": ["red"]}).write(world / "attributes.parquet")
    status, _, err = shotproof(*FEWSTAB)
    assert status == 2
    assert "the attributes lack 96 of the 96 items" in err


def test_an_empty_attribute_table(shotproof: Shotproof, world: Path) -> None:
    items = Catalog.read("catalog.parquet").items
    Attributes.from_words({item: [] for item in items}).write(world / "attributes.parquet")
    status, _, err = shotproof(*FEWSTAB)
    assert status == 2
    assert "the attribute table is empty" in err


def test_a_corrupt_image(shotproof: Shotproof, world: Path) -> None:
    broken = Catalog.read("catalog.parquet").paths[5]
    broken.write_bytes(broken.read_bytes()[:60])
    status, _, err = shotproof("encode", "catalog.parquet", "--encoder", "pixels", "-o", "f.parquet", "--workers", 1)
    assert status == 2
    assert err.count("\n") == 1
    assert broken.name in err
    assert not (world / "f.parquet").exists()
    status, out, _ = shotproof("catalog", "catalog.parquet", "--check", "--way", 3, "--shot", 2, "--query", 4)
    assert status == 1
    assert broken.name in out


def test_a_full_disk_leaves_nothing_half_written(world: Path) -> None:
    before = sorted(path.name for path in world.iterdir())

    def allow_small_files_only() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    command = [sys.executable, "-m", "shotproof", *map(str, FEWSTAB)]
    ended = subprocess.run(command, preexec_fn=allow_small_files_only, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: cannot write tasks.parquet: ")
    assert ended.stderr.count("\n") == 1
    assert sorted(path.name for path in world.iterdir()) == before


def test_an_existing_file_survives_a_failed_command(shotproof: Shotproof, world: Path) -> None:
    assert shotproof(*FEWSTAB)[0] == 0
    whole = (world / "tasks.parquet").read_bytes()
    assert shotproof(*FEWSTAB, "--way", 7)[0] == 2
    assert (world / "tasks.parquet").read_bytes() == whole


def test_check_tells_by_its_exit_status(shotproof: Shotproof, world: Path) -> None:
    assert shotproof(*FEWSTAB)[0] == 0
    check = ["share", "verify", "tasks.parquet", "catalog.parquet", "attributes.parquet"]
    status, out, _ = shotproof(*check)
    assert status == 0
    assert "every constraint holds" in out
    rows = pq.read_table(world / "tasks.parquet").to_pylist()
    rows[0]["support"], rows[1]["support"] = rows[1]["support"], rows[0]["support"]
    pq.write_table(type(pq.read_table(world / "tasks.parquet")).from_pylist(rows), world / "tasks.parquet")
    status, out, _ = shotproof(*check)
    assert status == 1
    assert "has the label" in out
    status, out, _ = shotproof(*check, "--json")
    assert status == 1
    assert json.loads(out)["violations"]


def test_attributes_that_a_sampler_does_not_use_are_no_harm(shotproof: Shotproof, world: Path) -> None:
    status, out, err = shotproof(*FEWSTAB, "--sampler", "random")
    assert status == 0
    assert err == "warning: sampler 'random' does not use attributes\n"
    assert "20 random tasks" in out


def test_version_and_nothing(shotproof: Shotproof) -> None:
    assert shotproof("--version")[1].startswith("shotproof ")
    status, out, _ = shotproof()
    assert status == 0
    assert "Usage: shotproof" in out
