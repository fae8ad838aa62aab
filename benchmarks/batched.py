"""Few-shot tasks of many worlds at a time, as tensors, for the statistical studies to draw and evaluate.

Worlds have equally many classes and items, so that all of them go through one array operation. The tests compare these
samplers with those of the package.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.learners.method import Method
from shotproof.worlds.gaussian import DrawnItems


@dataclass(frozen=True)
class Shape:
    """Classes per task, support items per class, query items per class."""

    way: int = 5
    shot: int = 5
    query: int = 15

    @property
    def items(self) -> int:
        """Return the number of items of a class in a task."""
        return self.shot + self.query


@dataclass(frozen=True)
class Tasks:
    """Tasks of many worlds: worlds [n], classes [n, way] and items, support first, [n, way, shot + query]."""

    world: Tensor
    classes: Tensor
    items: Tensor


def distinct(rows: int, bound: int, count: int, generator: torch.Generator) -> Tensor:
    """Draw `count` distinct integers below `bound` in each row."""
    at_once = max(1, 2**27 // bound)
    parts = []
    for start in range(0, rows, at_once):
        keys = torch.rand(min(at_once, rows - start), bound, generator=generator, device=generator.device)
        parts.append(keys.topk(count, dim=1).indices)
    return torch.cat(parts)


def random_tasks(
    data: DrawnItems, tasks: int, shape: Shape, generator: torch.Generator, classes: Tensor | None = None
) -> Tasks:
    """Draw random tasks of each world, on the classes [worlds * tasks, way] or on classes drawn here."""
    worlds, class_count, item_count = data.values.shape[:3]
    world = torch.arange(worlds, device=generator.device).repeat_interleave(tasks)
    if classes is None:
        classes = distinct(worlds * tasks, class_count, shape.way, generator)
    items = distinct(len(world) * shape.way, item_count, shape.items, generator)
    return Tasks(world, classes, items.view(len(world), shape.way, shape.items))


def depletion_tasks(data: DrawnItems, shape: Shape, generator: torch.Generator) -> tuple[Tasks, Tensor]:
    """Draw tasks without replacement until fewer than `way` classes have items left.

    Every world has as many rows of tasks as the luckiest; the second tensor says which of them exist [worlds, tasks].
    """
    worlds, class_count, item_count = data.values.shape[:3]
    device = generator.device
    order = torch.rand(worlds, class_count, item_count, generator=generator, device=device).argsort(-1)
    used = torch.zeros(worlds, class_count, dtype=torch.long, device=device)
    classes, items, exist = [], [], []
    for _ in range(class_count * (item_count // shape.items) // shape.way):
        left = used < item_count // shape.items
        keys = torch.rand(worlds, class_count, generator=generator, device=device) + left
        chosen = keys.topk(shape.way, dim=1).indices
        turn = used.gather(1, chosen)
        exist.append(left.sum(1) >= shape.way)
        position = turn.unsqueeze(-1) * shape.items + torch.arange(shape.items, device=device)
        rows = order.gather(1, chosen.unsqueeze(-1).expand(-1, -1, item_count))
        items.append(rows.gather(2, position.clamp_max(item_count - 1)))
        classes.append(chosen)
        used.scatter_add_(1, chosen, torch.ones_like(chosen))
    world = torch.arange(worlds, device=device).repeat_interleave(len(classes))
    drawn = Tasks(world, torch.stack(classes, 1).flatten(0, 1), torch.stack(items, 1).flatten(0, 1))
    return drawn, torch.stack(exist, 1)


def fewstab_tasks(
    data: DrawnItems, tasks: int, shape: Shape, generator: torch.Generator, at_once: int = 200_000
) -> Tasks:
    """Draw FewSTAB tasks of each world: exclusive support, queries of the lowest score, retried until one succeeds."""
    counts = data.has_word.sum(2)
    eligible = (counts >= shape.shot) & (data.has_word.shape[2] - counts >= shape.query)  # [worlds, classes, words]
    world = torch.arange(len(data.values), device=generator.device).repeat_interleave(tasks)
    classes = torch.empty(len(world), shape.way, dtype=torch.long, device=generator.device)
    items = torch.empty(len(world), shape.way, shape.items, dtype=torch.long, device=generator.device)
    is_open = torch.ones(len(world), dtype=torch.bool, device=generator.device)
    while is_open.any():
        open_tasks = is_open.nonzero().squeeze(1)
        # Few open tasks: many tries of each at a time.
        tries = open_tasks.repeat_interleave(min(max(1, at_once // len(open_tasks)), 30))[:at_once]
        chosen, word = _draw_words(eligible, world[tries], shape, generator)
        differ = (word.sort(1).values.diff(dim=1) != 0).all(1) & (word >= 0).all(1)
        tries, chosen, word = tries[differ], chosen[differ], word[differ]
        holds, holds_other = _find_holders(data, world[tries], chosen, word)
        enough = ((holds & ~holds_other).sum(-1) >= shape.shot).all(1).nonzero().squeeze(1)
        tries = tries[enough]
        first = torch.ones_like(tries, dtype=torch.bool)
        first[1:] = tries[1:] != tries[:-1]  # tries come task by task
        enough, tries = enough[first], tries[first]
        has_word = data.has_word[world[tries].unsqueeze(-1), chosen[enough]]
        items[tries] = _choose_items(has_word, holds[enough], holds_other[enough], word[enough], shape, generator)
        classes[tries] = chosen[enough]
        is_open[tries] = False
    return Tasks(world, classes, items)


def _draw_words(eligible: Tensor, world: Tensor, shape: Shape, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw classes [n, way] that have an eligible word, and one such word each; -1 if a world has too few classes."""
    usable = eligible.any(-1)[world]  # [n, classes]
    keys = torch.rand(usable.shape, generator=generator, device=generator.device) + usable
    chosen = keys.topk(shape.way, dim=1).indices
    of_class = eligible[world.unsqueeze(-1), chosen]
    word = (torch.rand(of_class.shape, generator=generator, device=generator.device) + of_class).argmax(-1)
    return chosen, torch.where(of_class.any(-1), word, -1)


def _find_holders(data: DrawnItems, world: Tensor, chosen: Tensor, word: Tensor) -> tuple[Tensor, Tensor]:
    """Find the items that hold their class's word, and those that hold another class's: [n, way, items]."""
    way = word.shape[1]
    selected = torch.stack(
        [data.has_word[world.unsqueeze(-1), chosen, :, word[:, slot, None]] for slot in range(way)], -1
    )  # [n, way, items, way]
    own_word = torch.eye(way, dtype=torch.bool, device=word.device)[:, None]
    return (selected & own_word).any(-1), (selected & ~own_word).any(-1)


def _choose_items(
    has_word: Tensor, holds: Tensor, holds_other: Tensor, word: Tensor, shape: Shape, generator: torch.Generator
) -> Tensor:
    """Choose support and query items of successful tries: [n, way, shot + query]."""

    def random() -> Tensor:
        return torch.rand(holds.shape, generator=generator, device=generator.device)

    support = (random() + (holds & ~holds_other)).topk(shape.shot, dim=-1).indices
    inter = ~holds & holds_other
    candidates = torch.where(inter.sum(-1, keepdim=True) >= shape.query, inter, ~holds)
    shares = (has_word & candidates.unsqueeze(-1)).sum(2).float()  # [n, way, words]
    shares.scatter_(-1, word.unsqueeze(1).expand(-1, shape.way, -1), 0.0)
    scores = (has_word.float() @ shares.unsqueeze(-1)).squeeze(-1) + random()
    query = scores.masked_fill(~candidates, torch.inf).topk(shape.query, dim=-1, largest=False).indices
    return torch.cat([support, query], -1)


def evaluate(data: DrawnItems, tasks: Tasks, shape: Shape, methods: Sequence[Method], at_once: int = 100_000) -> Tensor:
    """Compute the accuracy and worst-class accuracy of each method on each task, in percent: [n, 2 * methods]."""
    parts = []
    for start in range(0, len(tasks.world), at_once):
        part = slice(start, start + at_once)
        values = data.values[tasks.world[part, None, None], tasks.classes[part].unsqueeze(-1), tasks.items[part]]
        parts.append(score(values, shape, methods))
    return torch.cat(parts)


def score(values: Tensor, shape: Shape, methods: Sequence[Method]) -> Tensor:
    """Compute the same from the items' values [n, way, shot + query, d]."""
    support, query = values[:, :, : shape.shot].flatten(1, 2), values[:, :, shape.shot :].flatten(1, 2)
    label = torch.arange(shape.way, device=values.device)
    labels, truth = (label.repeat_interleave(count) for count in (shape.shot, shape.query))
    columns = []
    for method in methods:
        answers = method.scores(support, labels.expand(len(values), -1), query, shape.way).argmax(-1)
        by_class = 100 * (answers == truth).double().unflatten(1, (shape.way, shape.query)).mean(-1)
        columns += [by_class.mean(-1), by_class.amin(-1)]
    return torch.stack(columns, 1)
