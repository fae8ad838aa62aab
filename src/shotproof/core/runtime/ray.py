"""The engine that uses the machines of a Ray cluster: blocks of inputs as tasks, the work once in its object store."""

from __future__ import annotations

import io
import math
import pickle
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from shotproof.core.errors import ShotproofError, first_line
from shotproof.core.options import option
from shotproof.core.plain_values import format_value
from shotproof.core.runtime.carried import CannotTravel, Failure, pack
from shotproof.core.runtime.engine import Engine, Needs
from shotproof.core.runtime.worker import in_worker

if TYPE_CHECKING:
    from shotproof.core.runtime.ray_cluster import Cluster  # it imports Ray

BLOCKS_AHEAD = 2  # per place: enough to keep it busy, few enough for the memory of one who is slow to take results
SHARDS_PER_DEVICE = 8  # so that machines of different speed end together, and one that dies loses little
FEWEST_PER_SHARD = 16
SECONDS_BETWEEN_LOOKS = 5.0  # at whether there still is a machine, while no block comes back

Input = TypeVar("Input")
Output = TypeVar("Output")


@dataclass(frozen=True)
class RayEngine(Engine):
    """The machines of a Ray cluster, which have the same Python, Ray and Shotproof and see the same files.

    The cluster is the one that is named, `ray:HOST:PORT` or, by Ray's client, `ray://HOST:PORT`; else that of
    RAY_ADDRESS; else one on this machine alone, which starts and ends with this process. A block whose worker or
    machine dies is done again elsewhere.
    """

    about = "the machines of a Ray cluster (extra: ray)"
    example = "ray://head:10001"
    remote: ClassVar[bool] = True

    address: str | None = option(None, "of the cluster; None: RAY_ADDRESS, or a cluster on this machine", argument=True)
    cores: float = option(1.0, "cores that a block takes: with more, a machine has fewer at a time in memory", above=0)
    gpu_share: float = option(0.25, "of a GPU, that a block takes where it uses one", above=0, most=1)
    retries: int = option(3, "how often a block is done again whose worker died", least=0)

    def extras(self) -> dict[str, str]:
        """Ray."""
        return {"ray": "ray"}

    @property
    def spelling(self) -> str:
        """Without a colon where no cluster is named."""
        return super().spelling.replace(":None", "", 1) if self.address is None else super().spelling

    @property
    def sends_to(self) -> str | None:
        """The cluster that is named."""
        return self.address

    def map(
        self,
        work: Callable[[Input], Output],
        inputs: Sequence[Input],
        workers: int | None = None,
        chunk: int = 1,
        needs: Needs = "core",
    ) -> Generator[Output, None, None]:
        """Do the work on each input, as `Engine.map` says; work that cannot be pickled is done in this process."""
        if in_worker() or not len(inputs):
            yield from map(work, inputs)
            return
        packed = io.BytesIO()
        try:
            pack(work, packed, elsewhere=True)
        except CannotTravel:
            if workers is not None:
                raise
            yield from map(work, inputs)
            return
        yield from _Blocks(self, self._cluster(), packed.getvalue(), needs, workers).map(inputs, chunk)

    def shards(self, count: int) -> list[range]:
        """Several ranges for each device of the cluster."""
        devices = self._cluster().places("device", self.cores, self.gpu_share)
        size = max(FEWEST_PER_SHARD, math.ceil(count / (SHARDS_PER_DEVICE * max(1, devices))))
        return [range(start, min(start + size, count)) for start in range(0, count, size)]

    def _cluster(self) -> Cluster:
        self.require_extras()
        from shotproof.core.runtime.ray_cluster import connect

        return connect(self.address)


class _Block:
    """Inputs that travel together, and what became of them."""

    def __init__(self, inputs: Sequence[Any]) -> None:
        self.inputs = inputs
        self.task: Any = None  # Ray's reference to what it will give
        self.deaths = 0
        self.done: tuple[list[Any], Failure | None] | None = None

    def __str__(self) -> str:
        rest = f" and {len(self.inputs) - 1} more" if len(self.inputs) > 1 else ""
        return f"{format_value(str(self.inputs[0]))}{rest}"


class _Blocks:
    """The blocks of one map while it goes on."""

    def __init__(self, engine: RayEngine, cluster: Cluster, packed: bytes, needs: Needs, workers: int | None) -> None:
        self.engine, self.cluster, self.needs, self.workers = engine, cluster, needs, workers
        self.work = cluster.put(packed)
        self.begun: deque[_Block] = deque()

    def map(self, inputs: Sequence[Any], chunk: int) -> Generator[Any, None, None]:
        interrupted = False
        try:
            for start in range(0, len(inputs), chunk):
                while len(self.begun) >= BLOCKS_AHEAD * self._places():
                    yield from self._outputs_of_first()
                while self.workers is not None and len(self._under_way()) >= self.workers:
                    self._take_what_is_done()
                block = _Block(inputs[start : start + chunk])
                self._submit(block)
                self.begun.append(block)
            while self.begun:
                yield from self._outputs_of_first()
        except KeyboardInterrupt:
            interrupted = True
            raise
        finally:
            self.cluster.cancel(list(self._under_way()), at_once=interrupted)

    def _places(self) -> int:
        if self.workers is not None:
            return self.workers
        return max(1, self.cluster.places(self.needs, self.engine.cores, self.engine.gpu_share))

    def _under_way(self) -> dict[Any, _Block]:
        return {block.task: block for block in self.begun if block.done is None}

    def _submit(self, block: _Block) -> None:
        import cloudpickle

        pickled = cloudpickle.dumps(list(block.inputs))
        block.task = self.cluster.submit(self.work, pickled, self.needs, self.engine.cores, self.engine.gpu_share)

    def _outputs_of_first(self) -> Generator[Any, None, None]:
        first = self.begun[0]
        while first.done is None:
            self._take_what_is_done()
        self.begun.popleft()
        outputs, failure = first.done
        yield from outputs
        if failure is not None:
            raise failure.error()

    def _take_what_is_done(self) -> None:
        """Wait for a block, of any place; one that was lost is begun again."""
        from shotproof.core.runtime.ray_cluster import Died

        waited = self._under_way()
        ready = self.cluster.wait(list(waited), SECONDS_BETWEEN_LOOKS)
        for task in ready:
            block = waited[task]
            try:
                block.done = _unpickled(self.cluster.get(task))
            except Died as died:
                block.deaths += 1
                if block.deaths <= self.engine.retries:
                    self._submit(block)
                else:  # raised in its turn: what comes before it is kept
                    block.done = [], Failure.of(ShotproofError(self._given_up(block, died)))
        if not ready:
            self.cluster.require_cores()

    def _given_up(self, block: _Block, died: ShotproofError) -> str:
        help = f"try fewer workers, a smaller batch, or more cores per block, e.g. ray(cores={2 * self.engine.cores:g})"
        return f"{died} {block.deaths} times at the same block ({block}): {help}"


def _unpickled(output: bytes) -> tuple[list[Any], Failure | None]:
    try:
        done: tuple[list[Any], Failure | None] = pickle.loads(output)
    except Exception as error:
        reason = f"{first_line(error)}; expected one that can, or the engine local"
        raise ShotproofError(f"an output of a worker process cannot be unpickled here: {reason}") from error
    return done
