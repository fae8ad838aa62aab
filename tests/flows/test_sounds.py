"""From recordings to the report, on sounds that the test synthesizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from shotproof.analysis.compare import compare
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.encoder import encode
from shotproof.sounds.mix import MixSettings, mix
from shotproof.worlds.sounds import SoundsWorld
from tests.context_data import sample_context
from tests.report_files import write_report

pytestmark = pytest.mark.slow


def test_the_loss_to_other_backgrounds_grows_with_their_loudness_from_zero(tmp_path: Path) -> None:
    world = SoundsWorld(foregrounds=4, backgrounds=4, items=9)
    recordings = world.write(tmp_path / "world")
    losses, results, tasks = [], [], []
    for dial in (0.0, 0.5, 2.0):
        settings = MixSettings(dial=dial, on_the_fly=True, embedding=None)
        mixed = mix(
            recordings,
            world.mapping(),
            tmp_path / f"{dial}",
            settings,
            runtime=Runtime(cache=tmp_path / "cache", workers=1),
        )
        features = encode(mixed, "logmel", runtime=Runtime(cache=tmp_path / "cache", workers=1))
        sets = sample_context(mixed, way=4, shot=3, query=4, tasks=60)
        results += [evaluate(task_set, features, ["ncc"]) for task_set in sets.values()]
        tasks += sets.values()
        (gap,) = [gap for gap in compare(results[-3:]).gaps if gap.against == "ood"]
        losses.append(gap.rows[0].intervals["acc"]["sampler"])
    assert losses[0].low <= 2
    assert abs(losses[0].mean) < 3
    assert losses[0].mean < losses[1].mean < losses[2].mean
    assert losses[2].low > 20
    comparison = write_report(tmp_path / "report.html", results, tasks=tasks[-3:], catalog=mixed)
    assert [design.dial for design in comparison.designs] == [0.0, 0.5, 2.0]
    page = (tmp_path / "report.html").read_text()
    assert page.count("data-sound=") > 20
    assert "Loss of Acc, iid - ood, 4-way 3-shot" in page
    assert comparison.rows("gap") == comparison.rows("gap", axis="contexts") != []
