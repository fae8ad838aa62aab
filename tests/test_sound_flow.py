"""From recordings to the report, on sounds that the test synthesises."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from shotproof.evaluation.evaluate import evaluate
from shotproof.features.encoder import encode
from shotproof.report.page import write_report
from shotproof.sounds.mix import MixSettings, mix
from shotproof.stats.compare import compare
from shotproof.tasks.context_sets import sample_context
from shotproof.worlds.sounds import SoundsWorld


def test_the_loss_to_other_backgrounds_grows_with_their_loudness_from_zero(tmp_path: Path) -> None:
    world = SoundsWorld(foregrounds=4, backgrounds=4, items=9)
    recordings = world.write(tmp_path / "world")
    losses, results, tasks = [], [], []
    for dial in (0.0, 0.5, 2.0):
        settings = MixSettings(dial=dial, on_the_fly=True, embedding=None)
        mixed = mix(recordings, world.mapping(), tmp_path / f"{dial}", settings, cache=tmp_path / "cache", workers=1)
        features = encode(mixed, "logmel", cache=tmp_path / "cache", workers=0)
        sets = sample_context(mixed, way=4, shot=3, query=4, tasks=60)
        results += [evaluate(one, features, ["ncc"]) for one in sets.values()]
        tasks += sets.values()
        (gap,) = [one for one in compare(results[-3:]).gaps if one.biased == "hard_ood"]
        losses.append(gap.methods[0].intervals["acc"]["sampler"])
    assert losses[0].low <= 0.02
    assert abs(losses[0].mean) < 0.03
    assert losses[0].mean < losses[1].mean < losses[2].mean
    assert losses[2].low > 0.2
    comparison = write_report(tmp_path / "report.html", results, tasks=tasks[-3:], catalog=mixed)
    assert [design.dial for design in comparison.designs] == [0.0, 0.5, 2.0]
    page = (tmp_path / "report.html").read_text()
    assert page.count("data-sound=") > 20
    assert "Loss of Acc, iid - hard_ood, 4-way 3-shot" in page
    assert np.all([row.accuracy_gap is not None for row in comparison.rows])
