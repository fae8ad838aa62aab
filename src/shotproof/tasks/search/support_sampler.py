"""Base class of samplers that choose supports for given query sets, by the features of the candidates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from shotproof.core import draws
from shotproof.core.arrays import IntArray
from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.core.records import Meta
from shotproof.core.runtime.devices import choose_device
from shotproof.core.runtime.runtime import current_runtime
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.sampler import SKIP_SMALL_CLASSES, BoundSampler, Sampler, SamplerInputs
from shotproof.tasks.search.candidates import Candidates, ClassCandidates
from shotproof.tasks.search.query_sets import QuerySets, may_be_support, require_enough
from shotproof.tasks.taskset import SCHEMA, TaskSet
from shotproof.tasks.uniform.random import BoundRandom, Random

Uniform = Callable[[int], Tensor]
"""Random numbers in [0, 1) for each candidate of each slot, [S, P], by their purpose."""

BUDGET = 2**29  # bytes of the features of a batch of tasks, and also of everything else that the batch holds


@dataclass(frozen=True)
class SupportSampler(Sampler):
    """Base class of samplers that take classes, shots and queries from `like`, or from `random` with the same seed."""

    takes = ("features", "like")
    needs = ("features",)

    mode: Literal["hard", "easy"] = option("hard", "whether supports are as hard or as easy as possible")
    normalize: bool = option(False, "normalize features to length 1 first")
    skip_small_classes: bool = option(False, SKIP_SMALL_CLASSES)

    @property
    def sign(self) -> float:
        """Return 1 to raise the queries' loss, -1 to lower it."""
        return 1.0 if self.mode == "hard" else -1.0

    def bound(self, inputs: SamplerInputs) -> BoundSupportSampler:
        """Bind the sampler to these inputs."""
        return BoundSupportSampler(self, inputs)

    @abstractmethod
    def choose(self, candidates: Candidates, uniform: Uniform) -> Tensor:
        """Choose the supports of these tasks: a mask of the candidates [S, P]."""

    def peak_floats_per_candidate(self, queries: int) -> int:
        """Return how many numbers `choose` holds at once per candidate of a slot, which decides the size of batches."""
        return 8


class BoundSupportSampler(BoundSampler[SupportSampler]):
    """Support search bound to its inputs.

    The candidates of a class are all its items, except those that share a source with one of the task's queries.
    """

    on_device = True

    def __init__(self, sampler: SupportSampler, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        assert inputs.features is not None
        self.features = inputs.features
        skip = sampler.skip_small_classes
        self.random = None if self.like else BoundRandom(Random(skip_small_classes=skip), inputs)
        self.pool = self.random.pool if self.random else ItemPool.of(inputs.catalog)
        self.feature_rows = self.features.rows_of(self.pool.items)
        if self.like is not None:
            QuerySets.of(self.like.table, self.pool)  # raises an error before anything is drawn

    def choose(self, candidates: Candidates, numbers: IntArray) -> Tensor:
        """Choose the supports of the tasks with these numbers [B]: a mask of the candidates [S, P]."""

        def uniform(purpose: int) -> Tensor:
            slot, position = np.arange(candidates.way)[:, None], np.arange(candidates.allowed.shape[-1])
            bits = draws.bits(self.seed, numbers[:, None, None], purpose, slot, position)
            return torch.from_numpy(draws.uniform(bits)).flatten(0, 1).to(candidates.allowed.device)

        return self.sampler.choose(candidates, uniform)

    def draw(self, tasks: range) -> pa.Table:
        """Draw the rows of these tasks."""
        table = self._without_supports(tasks)
        sets = QuerySets.of(table, self.pool)
        ends = np.concatenate([[0], np.cumsum(sets.shots)])
        supports = np.empty(ends[-1], dtype=np.int64)
        for members in self._batches(sets):
            chosen = self.choose(self._candidates(sets, members, tasks), members + tasks.start)
            slot, position = np.nonzero(chosen.cpu().numpy())  # row by row
            row = sets.rows(members)[slot]
            rank = np.arange(len(slot)) - np.searchsorted(slot, slot)
            supports[ends[row] + rank] = self.pool.offsets[sets.classes[row]] + position
        return self.pool.with_side(table, "support", supports, sets.shots)

    def match(self, tasks: TaskSet) -> str:
        """Return the digest of the set with the same queries: `like`, or the random one with the same seed."""
        return super().match(tasks) or TaskSet(self._without_supports(range(len(tasks)))).digest

    def summary(self, tasks: TaskSet) -> Meta:
        """Summarize which classes are left out because they are too small."""
        return {"classes_left_out": []} if self.random is None else self.random.summary(tasks)

    def _without_supports(self, tasks: range) -> pa.Table:
        """Return rows with classes, shots and queries, whose supports are still to be replaced."""
        return self.random.draw(tasks).select(SCHEMA.names) if self.random else self.rows_of_like(tasks)

    def _batches(self, sets: QuerySets) -> Iterator[IntArray]:
        """Yield batches of tasks of one shape, within the memory budget; they do not affect the chosen supports."""
        shapes, shape_of = np.unique(sets.shapes(), axis=0, return_inverse=True)
        width = self.features.array.shape[1]
        for shape, (way, queries) in enumerate(shapes.tolist()):
            members = np.flatnonzero(shape_of == shape)
            classes = sets.classes[sets.rows(members)]
            sizes = self.pool.sizes[classes].reshape(-1, way)
            floats = sizes.max() * way * self.sampler.peak_floats_per_candidate(queries)
            if self.pool.sizes[np.unique(classes)].sum() * width * 8 > BUDGET:
                # All classes together exceed the budget: count them as if no two tasks shared one.
                floats += sizes.sum(1).max() * width
            size = max(1, BUDGET // (8 * int(floats)))
            yield from (members[start : start + size] for start in range(0, len(members), size))

    def _candidates(self, sets: QuerySets, members: IntArray, tasks: range) -> Candidates:
        """Build a batch of tasks of one shape, as tensors on the device."""
        device = choose_device(current_runtime().device, torch.float64)
        rows = sets.rows(members)
        classes, way = sets.classes[rows], len(rows) // len(members)
        query = np.concatenate([sets.query[sets.first[row] : sets.first[row + 1]] for row in rows])
        slot_of_query = np.repeat(np.arange(len(rows)), sets.count[rows])
        task_of_slot = np.repeat(members + tasks.start, way)
        allowed = may_be_support(self.pool, classes, task_of_slot, query, slot_of_query)
        require_enough(self.pool, classes, task_of_slot, allowed, sets.shots[rows])
        distinct, class_of_slot = np.unique(classes, return_inverse=True)
        ends = np.concatenate([[0], np.cumsum(self.pool.sizes[distinct])])
        features = torch.empty(int(ends[-1]), self.features.array.shape[1], dtype=torch.float64, device=device)
        by_class = []
        for index, chosen in enumerate(distinct.tolist()):
            target = features[ends[index] : ends[index + 1]]
            self._read_features(chosen, target)
            slots = torch.from_numpy(np.flatnonzero(class_of_slot == index)).to(device)
            by_class.append(ClassCandidates(slots, target))
        query_rows = query + (ends[class_of_slot] - self.pool.offsets[classes])[slot_of_query]
        return Candidates(
            features=features,
            query_rows=torch.from_numpy(query_rows).view(len(members), -1).to(device),
            labels=torch.from_numpy(slot_of_query % way).view(len(members), -1).to(device),
            shots=torch.from_numpy(sets.shots[rows]).to(device),
            allowed=torch.from_numpy(allowed).to(device),
            first_rows=torch.from_numpy(ends[class_of_slot]).to(device),
            classes=by_class,
        )

    def _read_features(self, chosen: int, target: Tensor) -> None:
        """Read the features [n, d] of a class's items, as float64, so that the rounding of sums has no effect."""
        start, stop = self.pool.offsets[chosen : chosen + 2]
        target.copy_(torch.from_numpy(self.features.array[self.feature_rows[start:stop]]))
        not_finite = ~target.sum(-1).isfinite()  # float64 sums of float32 numbers do not overflow
        if not_finite.any():
            item = self.pool.items[int(start) + int(not_finite.int().argmax())]
            raise InputError(f"features: item '{item}' has a value that is not finite")
        if self.sampler.normalize:
            target /= torch.linalg.vector_norm(target, dim=-1, keepdim=True).clamp(min=1e-300)
