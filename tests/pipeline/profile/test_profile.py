"""A whole profile: the card of a classifier, and of one with a planted fault, on a world with a known truth."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.cli.app import app
from shotproof.comparison.card import Card
from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import runtime
from shotproof.features.encoder import encode
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.profile.profile import Profile, profile
from shotproof.pipeline.verify import verify
from shotproof.worlds.shapes import ShapesWorld
from tests.drawn_layers import draw_masked

pytestmark = pytest.mark.slow

RUNNER = CliRunner()


@dataclass(frozen=True)
class Printed:
    """A card that the command has written, and what it said."""

    folder: Path
    card: Card
    stdout: str
    stderr: str


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("profile")
    world = ShapesWorld(classes=5, items=40)
    catalog = world.catalog()
    # The world's other columns would be contexts that are planted attributes, too.
    Catalog(catalog.table.select(["item", "path", "label", "split"])).write(folder / "catalog.parquet")
    world.attributes().write(folder / "attributes.parquet")
    for name, share in (("sound", 0.0), ("planted", 0.8)):
        encode(catalog, f"dial(share={share})").write(folder / f"{name}.parquet")
    return folder


@pytest.fixture(scope="module")
def sound(folder: Path) -> Printed:
    """An encoder that sees nothing of the planted attributes."""
    given = [str(folder / "sound.parquet"), str(folder / "attributes.parquet")]
    flags = [
        "--way",
        "3",
        "--query",
        "4",
        "--tasks",
        "400",
        "--quick",
        "--workers",
        "1",
        "--cache",
        "none",
        "-o",
        str(folder / "sound"),
    ]
    result = RUNNER.invoke(app, ["profile", str(folder / "catalog.parquet"), *given, *flags])
    assert result.exit_code == 0, result.output
    return Printed(folder / "sound", Card.read(folder / "sound"), result.stdout, result.stderr)


@pytest.fixture(scope="module")
def planted(folder: Path) -> Profile:
    """An encoder that sees little else."""
    with runtime(workers=1, cache=None):
        return profile(
            folder / "catalog.parquet",
            folder / "planted",
            features=folder / "planted.parquet",
            attributes=[folder / "attributes.parquet"],
            way=3,
            query=4,
            tasks=400,
            quick=True,
        )


def test_the_card_has_every_axis_and_says_what_is_missing(sound: Printed) -> None:
    names = [axis.name for axis in sound.card.axes]
    assert names[:4] == ["random-1-shot", "random-5-shot", "random-10-shot", "fewstab"]
    assert names[4:] == ["hardest", "unbalanced"]
    assert [axis.name for axis in sound.card.missing] == ["contexts", "semantic", "changes"]
    fewstab = sound.card.axes[3]
    assert fewstab.reference is not None
    assert fewstab.placebo is not None
    assert fewstab.reference.digest == sound.card.axes[1].tasks.digest
    assert [(baseline.encoder, baseline.method) for baseline in fewstab.baselines][:2] == [
        ("sound", "ncc"),
        ("sound", "ridge"),
    ]


def test_a_check_makes_the_card_again_with_its_placebos(sound: Printed) -> None:
    found = verify(sound.folder)
    assert (found.conclusion, found.unchecked) == ("verified", {})


def test_numbers_and_intervals_are_those_of_the_comparison(planted: Profile) -> None:
    assert Card.read(planted.folder) == planted.card
    losses = [loss for block in planted.comparison.blocks for loss in block.losses]
    for axis, loss in zip(planted.card.stresses, losses, strict=True):
        row = next(row for row in loss.skill.rows if row.classifier.method == "cosine")
        interval = axis.estimates["skill_lost"]["acc"]
        assert interval == row.first("acc")
        again = axis.estimates["skill_lost"]["acc"].estimate.interval(interval.covers, interval.level)
        assert (again.low, again.high) == pytest.approx((interval.low, interval.high))


def test_the_folder_has_a_page_a_figure_a_badge_and_an_experiment_that_can_be_run(sound: Printed) -> None:
    assert "How robust is cosine on sound?" in (sound.folder / "card.html").read_text()
    assert (sound.folder / "card.svg").read_text().startswith("<svg xmlns=")
    assert "robustness: " in (sound.folder / "badge.svg").read_text()
    assert Experiment.read(sound.folder / "experiment.toml").draws[0].shots == (1, 5, 10)


def test_a_planted_fault_is_on_the_right_axis_and_the_gate_fails_on_it_alone(
    sound: Printed, planted: Profile, tmp_path: Path
) -> None:
    limits = tmp_path / "limits.toml"
    limits.write_text("max_skill_lost = 30\n[axes.hardest]\nmax_skill_lost = 100\n")
    kept, broken = (
        RUNNER.invoke(app, ["gate", str(one.folder), "--limits", str(limits), "--json"]) for one in (sound, planted)
    )
    assert (kept.exit_code, broken.exit_code) == (0, 1), kept.output + broken.output
    failed = [load["axis"] for load in json.loads(broken.output)["checks"] if load["outcome"] == "fail"]
    assert failed == ["fewstab"]
    costly = next(axis for axis in planted.card.axes if axis.name == "fewstab")
    assert costly.conclusion == "+"
    assert costly.verdict.startswith("It relies on attributes")


def test_the_same_tasks_are_drawn_for_both_but_those_that_are_searched(sound: Printed, planted: Profile) -> None:
    digests = [{axis.name: axis.tasks.digest for axis in one.card.axes} for one in (sound, planted)]
    assert {name for name in digests[0] if digests[0][name] != digests[1][name]} == {"hardest"}


def test_the_command_says_what_it_chose_and_what_is_missing(sound: Printed) -> None:
    assert "not measured contexts: no column" in sound.stderr
    assert "add --class-distances FILE" in sound.stderr
    assert "random-10-shot" in sound.stdout
    assert sound.card.verdict[0] in sound.stdout
    assert "This is a quick card" in sound.stdout
    steps = ["catalog", "attributes", "features", "tasks", "evaluation", "intervals", "report"]
    assert [line.split()[0] for line in sound.stderr.splitlines() if line.endswith(" s")] == steps


def test_a_profile_that_cannot_be_leaves_nothing_behind(folder: Path) -> None:
    with pytest.raises(InputError, match="unknown method 'cosin'"):
        profile(folder / "catalog.parquet", folder / "new" / "one", encoder="pixels", method="cosin")
    assert not (folder / "new" / "one").exists()


def test_the_folder_of_other_data_is_refused(sound: Printed, folder: Path, tmp_path: Path) -> None:
    Catalog.read(folder / "catalog.parquet").write(tmp_path / "catalog.parquet")
    before = {path: path.read_bytes() for path in sound.folder.iterdir() if path.is_file()}
    with pytest.raises(InputError, match=r"belongs to shotproof profile on .*, but this is .* on .*--output"):
        profile(tmp_path / "catalog.parquet", sound.folder, encoder="pixels", query=4)
    assert {path: path.read_bytes() for path in sound.folder.iterdir() if path.is_file()} == before


def test_the_ways_that_would_do_are_named_where_words_are_too_few(folder: Path, tmp_path: Path) -> None:
    items = Catalog.read(folder / "catalog.parquet").items
    words = {item: [("red", "blue", "green")[number % 3]] if number % 2 else [] for number, item in enumerate(items)}
    Attributes.from_words(words).write(tmp_path / "few.parquet")
    given = {"features": folder / "sound.parquet", "attributes": [tmp_path / "few.parquet"]}
    with runtime(workers=1, cache=None):
        found = profile(folder / "catalog.parquet", tmp_path / "out", **given, query=4, tasks=20, quick=True)  # type: ignore[arg-type]
    (missing,) = [axis for axis in found.card.missing if axis.name == "fewstab"]
    assert missing.reason.startswith("5 ways are too many, but --way 3 is possible: 5 ways need 5")


def test_the_schema_is_printed() -> None:
    result = RUNNER.invoke(app, ["show", "card"])
    assert json.loads(result.output)["title"] == "Shotproof robustness card"


def test_backgrounds_are_changed_where_masks_are_good_and_all_else_everywhere(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path, classes=4, items=20)
    Catalog(catalog.table.drop_columns(["mask", "ground"]), tmp_path).write(tmp_path / "catalog.parquet")
    (tmp_path / "masks" / "0-0.png").unlink()
    flags = ["--masks", str(tmp_path / "masks"), "--encoder", "pixels(size=4)", "--way", "3", "--query", "2"]
    typed = ["profile", str(tmp_path / "catalog.parquet"), *flags, "--tasks", "30", "--cache", "none"]
    result = RUNNER.invoke(app, [*typed, "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    axes = {axis.name: axis for axis in Card.read(tmp_path / "out").axes}
    references = {name: axes[name].reference for name in ("blur", "only-background", "mixed-same", "mixed-rival")}
    compared = [reference.sampler for reference in references.values() if reference is not None]
    assert compared == ["random", "shift", "shift", "mixed-same"]
    assert "1 of 80 images without a good mask" in result.stderr
    assert "encoding " in result.stderr
    assert len(Catalog.read(tmp_path / "out" / "catalog.parquet")) == 80
    checked = verify(tmp_path / "out")
    assert (checked.conclusion, checked.unchecked) == ("verified", {})
