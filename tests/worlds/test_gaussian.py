from __future__ import annotations

import numpy as np
import torch

from shotproof.evaluation.evaluate import evaluate
from shotproof.tasks.sampler import sample
from shotproof.worlds.gaussian import GaussianWorld, as_files


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_items_are_normal_around_their_class() -> None:
    world = GaussianWorld(dimensions=3, separation=2.0)
    classes = world.draw_classes((4, 5), generator())
    items = world.draw_items(classes, 4000, generator(1))
    assert items.values.shape == (4, 5, 4000, 3)
    torch.testing.assert_close(items.values.mean(2), classes.means, atol=0.08, rtol=0)
    torch.testing.assert_close(items.values.std(2), torch.ones(4, 5, 3), atol=0.06, rtol=0)
    many = world.draw_classes((20_000,), generator(2))
    torch.testing.assert_close(many.means.std(0), torch.full((3,), 2.0), atol=0.05, rtol=0)


def test_words_hold_as_often_as_their_class_shows_them_and_move_the_items() -> None:
    world = GaussianWorld(families=2, words=3, pull=1.5)
    classes = world.draw_classes((2,), generator())
    items = world.draw_items(classes, 20_000, generator(1))
    assert (items.has_word.unflatten(-1, (2, 3)).sum(-1) == 1).all()
    torch.testing.assert_close(items.has_word.float().mean(1), classes.shares.flatten(1), atol=0.02, rtol=0)
    for word in range(6):
        with_word, without = (items.values[0][items.has_word[0, :, word] == holds].mean(0) for holds in (True, False))
        assert abs(float(with_word[word] - without[word]) - 1.5) < 0.1


def test_a_world_as_files_is_what_samplers_and_methods_take() -> None:
    world = GaussianWorld(dimensions=4, separation=3.0, families=2)
    items = world.draw_items(world.draw_classes((6,), generator()), 40, generator(1))
    catalog, features, attributes = as_files(items)
    np.testing.assert_array_equal(features.array, items.values.flatten(0, 1).numpy())
    held = attributes.of(catalog)
    np.testing.assert_array_equal(held.matrix.toarray(), items.has_word.flatten(0, 1).numpy())
    tasks = sample(catalog, "fewstab", attributes=attributes, way=3, shot=1, query=5, tasks=10)
    assert evaluate(tasks, features, ["ncc"]).counts("ncc").accuracy_by_task().mean() > 0.5


def test_the_same_seed_gives_the_same_world() -> None:
    world = GaussianWorld(families=1)
    first, second = (world.draw_items(world.draw_classes((3,), generator(7)), 5, generator(8)) for _ in range(2))
    assert torch.equal(first.values, second.values)
    assert torch.equal(first.has_word, second.has_word)
