"""The comparison that a run ends with: its intervals and metric, and all that stands in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from shotproof.catalog.layout import read_layout
from shotproof.core.errors import InputError
from shotproof.pipeline.study import run
from tests.features.encoders.test_hf import saved
from tests.pipeline.shapes_experiment import EXPERIMENT


def test_images_come_first_where_nothing_is_asked_for_and_a_set_too_small_says_so(experiment: Path) -> None:
    """Ten items per class are enough for halves with 1 shot and 4 queries, and too few with 2 shots."""
    text = EXPERIMENT.replace('intervals = ["sampler"]', "").replace('["ncc", "knn"]', '["ncc"]')
    experiment.write_text(text.replace("tasks = 12", "tasks = 12\nplacebo = false"))
    outcome = run(experiment)
    assert outcome.compare().interval_names == ("images", "sampler")
    one, two = outcome.compare().blocks
    assert {row.first("acc").covers for group in one.groups for row in group.rows} == {"images"}
    assert {row.first("acc").covers for group in two.groups for row in group.rows} == {"sampler"}
    refused = two.groups[0].rows[0].intervals["acc"]["images"].refused
    assert refused is not None
    assert "halves of the images need 12 of each class" in refused
    assert outcome.compare().refused == {}


def test_the_metric_and_the_intervals_of_the_file_are_those_of_the_comparison(experiment: Path) -> None:
    asked = 'intervals = ["depletion", "sampler"]\nmetric = "wacc"'
    experiment.write_text(EXPERIMENT.replace('intervals = ["sampler"]', asked))
    comparison = run(experiment).compare()
    assert comparison is not None
    assert (comparison.interval_names, comparison.metric) == (("depletion", "sampler"), "wacc")
    assert list(comparison.to_json()["covers"]) == ["depletion", "sampler"]


def test_detectors_seeds_and_encoders_stand_in_one_comparison(experiment: Path) -> None:
    text = EXPERIMENT.replace(
        '[attributes]\ndetectors = ["photometric"]',
        '[attributes.sets]\nlight = ["photometric"]\nboth = ["photometric", "table(file=\'words.csv\')"]',
    )
    items = read_layout(experiment.parent / "world").items
    words = "".join(f"{item},{'striped' if place % 3 else ''}\n" for place, item in enumerate(items))
    (experiment.parent / "words.csv").write_text(f"item,attributes\n{words}")
    text = text.replace('["pixels(size=4)"]', '["pixels(size=4)", "pixels(size=2)"]')
    text = text.replace("shots = [1, 2]", "shots = [1]\nseeds = [0, 5]")
    experiment.write_text(text)
    outcome = run(experiment)
    (block,) = outcome.compare().blocks
    assert [group.label for group in block.measured] == ["random", "fewstab [light]", "fewstab [both]"]
    assert list(block.placebos.values()) == ["placebo of fewstab [light]", "placebo of fewstab [both]"]
    assert all(loss.excess for loss in block.losses)
    assert all(group.seeds == [0, 5] and group.tasks == 24 for group in block.groups)
    assert outcome.compare().encoders == ["pixels(size=4)", "pixels(size=2)"]
    (agreement,) = block.detectors
    assert agreement.detectors == ("light", "both")
    assert agreement.accuracy is not None
    light, both = agreement.accuracy
    assert both == 100.0  # it finds all words that the other has
    assert 0 < light < 100


@pytest.mark.usefixtures("quiet_transformers")
def test_stages_are_encoders_of_their_own_and_are_on_the_page(experiment: Path) -> None:
    saved("convnext", experiment.parent / "net")
    model = f"hf:{experiment.parent / 'net'}"
    text = EXPERIMENT.replace('["pixels(size=4)"]', f'["{model}"]\nstages = [1, 3]').replace("tasks = 12", "tasks = 4")
    text = text.replace('methods = ["ncc", "knn"]', 'methods = ["ncc"]').replace("shots = [1, 2]", "shots = [1]")
    text = text.replace("query = 4", "query = 4\nplacebo = false")
    experiment.write_text(text)
    done = run(experiment)
    assert done.compare().encoders == ["hf:net", "hf:net(stage=1)", "hf:net(stage=3)"]
    assert "hf:net: random - fewstab, 3-way 1-shot" in done.page.read_text()
    experiment.write_text(text.replace("stages = [1, 3]", "stages = [5]"))
    with pytest.raises(InputError, match=r"\[features\], stages: encoder 'hf:.*' has 4 stages, but stage 5"):
        run(experiment, dry_run=True)
