"""A short version of the study in benchmarks/coverage.py, and its batched samplers beside those of the package."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from benchmarks import batched
from benchmarks.batched import Shape
from benchmarks.coverage import Effort, Setting, study
from benchmarks.unusual_worlds import Noise, UnusualWorld

from shotproof.evaluation.evaluate import evaluate
from shotproof.learners.method import make_method
from shotproof.tasks.sampler import sample
from shotproof.worlds.gaussian import DrawnItems, GaussianWorld, as_files

pytestmark = pytest.mark.slow

SHAPE = Shape(way=3, shot=2, query=5)


@pytest.fixture
def world() -> DrawnItems:
    """Two worlds of 6 classes x 40 items, with words."""
    drawn, generator = GaussianWorld(dimensions=6, families=2, pull=2.0), torch.Generator().manual_seed(0)
    return drawn.draw_items(drawn.draw_classes((2, 6), generator), 40, generator)


@pytest.mark.parametrize("sampler", ["random", "fewstab"])
def test_batched_tasks_are_as_hard_as_the_packages(world: DrawnItems, sampler: str) -> None:
    methods = [make_method("ncc"), make_method("cosine")]
    draw = {"random": batched.random_tasks, "fewstab": batched.fewstab_tasks}[sampler]
    tasks = draw(world, 1500, SHAPE, torch.Generator().manual_seed(1))
    ours = batched.evaluate(world, tasks, SHAPE, methods).unflatten(0, (2, 1500))[1].numpy()
    catalog, features, attributes = as_files(world.at(torch.tensor(1)))
    words = {"attributes": attributes} if sampler == "fewstab" else {}
    drawn = sample(catalog, sampler, way=3, shot=2, query=5, tasks=1500, **words)
    results = evaluate(drawn, features, ["ncc", "cosine"])
    counts = [results.counts(name) for name in results.methods]
    package = np.stack([values for count in counts for values in (count.accuracy_by_task(), count.worst_by_task())], 1)
    error = np.sqrt((ours.var(0) + package.var(0)) / 1500)
    assert (np.abs(ours.mean(0) - package.mean(0)) < 4 * error).all()


def test_batched_depletion_uses_no_item_twice(world: DrawnItems) -> None:
    tasks, exist = batched.depletion_tasks(world, SHAPE, torch.Generator().manual_seed(2))
    for number in range(2):
        chosen = (tasks.world == number) & exist.flatten()
        used = tasks.classes[chosen].unsqueeze(-1) * 40 + tasks.items[chosen]
        assert len(used.unique()) == used.numel()
        left = 40 // 7 - torch.bincount(tasks.classes[chosen].flatten(), minlength=6)
        assert (left >= 0).all()
        assert (left > 0).sum() < 3


@pytest.mark.parametrize("noise", ["normal", "t4", "skewed"])
def test_unusual_worlds_have_their_truth(noise: Noise) -> None:
    """Large data sets of the classes come near to it, and the noise has variance 1 whatever its shape."""
    world, random = UnusualWorld("large", noise, classes=8, sizes=(600, 700)), np.random.default_rng(3)
    drawn = world.draw_noise((100_000,), random)
    assert np.abs(drawn.mean(0)).max() < 0.03
    assert np.abs(drawn.var(0) - 1).max() < 0.2
    skewness = np.abs((drawn**3).mean(0)).max()
    assert (skewness > 2) if noise == "skewed" else noise == "t4" or skewness < 0.1
    means = world.draw_means(random)
    catalog, features = world.draw(means, random)
    results = evaluate(sample(catalog, "random", way=5, shot=5, query=10, tasks=1000), features, ["ncc", "cosine"])
    counts = [results.counts(name) for name in results.methods]
    package = np.array([[count.accuracy_by_task(), count.worst_by_task()] for count in counts])
    truth = world.truth(means, 1000, random)
    assert (np.abs(package.mean(-1) - truth) < 4 * package.std(-1) / np.sqrt(400)).all()


def test_near_duplicates_are_told_by_their_source() -> None:
    random = np.random.default_rng(4)
    told, untold = (
        UnusualWorld("twins", classes=6, sizes=(20, 20), per_source=2, known_sources=one) for one in (True, False)
    )
    catalog, features = told.draw(told.draw_means(random), random)
    assert len(set(catalog.table.column("source").to_pylist())) == 6 * 10
    pairs = features.array.reshape(-1, 2, features.array.shape[1])
    assert np.abs(pairs[:, 0] - pairs[:, 1]).mean() < 0.3
    assert "source" not in untold.draw(untold.draw_means(random), random)[0].table.column_names


def test_each_interval_covers_what_it_names() -> None:
    torch.set_num_threads(1)
    setting = Setting(12, 30, Shape(way=3, shot=1, query=5), tasks=400)
    rows = study([setting], 60, Effort(splits=40, half_tasks=30, truth_tasks=3000))
    by_name = {(row.estimated, row.interval): row for row in rows}
    for estimated in setting.contrasts:
        sampler, images, classes = (by_name[estimated, name] for name in ("sampler", "images", "classes"))
        assert images.new_images >= 85
        assert classes.new_classes >= 85
        assert sampler.half_width < min(images.half_width, classes.half_width)
    assert by_name["Acc", "sampler"].new_images < 80
    assert by_name["Acc", "sampler"].new_classes < 60
    assert by_name["Acc", "images"].half_width < by_name["Acc", "classes"].half_width
    assert by_name["Acc", "images"].half_width < by_name["Acc", "depletion"].half_width
