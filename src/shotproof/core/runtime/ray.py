"""Engine that uses a Ray cluster: a block of inputs is a Ray task, and the function is stored once as a Ray object."""

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
from shotproof.core.runtime.engine import Engine, Needs
from shotproof.core.runtime.shared_state import CannotTravel, Failure, pack
from shotproof.core.runtime.worker import in_worker

if TYPE_CHECKING:
    from shotproof.core.runtime.ray_cluster import Cluster  # imports Ray

BLOCKS_AHEAD = 2  # per slot: enough to keep it busy, few enough to bound memory if results are consumed slowly
SHARDS_PER_DEVICE = 8  # so that machines of different speeds finish together, and little is lost if one dies
FEWEST_PER_SHARD = 16
SECONDS_BETWEEN_CHECKS = 5.0  # while no block finishes, at whether the cluster still has machines

Input = TypeVar("Input")
Output = TypeVar("Output")


@dataclass(frozen=True)
class RayEngine(Engine):
    """Machines of a Ray cluster; all need the same versions of Python, Ray and Shotproof, and access to the same files.

    The cluster is `ray:HOST:PORT` or, with Ray's client, `ray://HOST:PORT`. If no address is given, it is that of
    RAY_ADDRESS, or a cluster on this machine, which starts and ends with this process. If a worker or machine dies, its
    block is repeated elsewhere.
    """

    about = "the machines of a Ray cluster (extra: ray)"
    example = "ray://head:10001"
    remote: ClassVar[bool] = True

    address: str | None = option(
        None, "address of the cluster; None: RAY_ADDRESS, or a cluster on this machine", argument=True
    )
    cores: float = option(1.0, "cores per block; with more, a machine holds fewer blocks in memory", above=0)
    gpu_share: float = option(0.25, "share of a GPU per block, if the block uses one", above=0, most=1)
    retries: int = option(3, "how often a block is repeated if its worker dies", least=0)

    def extras(self) -> dict[str, str]:
        """Return the module that this engine requires, with its extra."""
        return {"ray": "ray"}

    @property
    def spelling(self) -> str:
        """Return the spelling, without a colon if no address is given."""
        return super().spelling.replace(":None", "", 1) if self.address is None else super().spelling

    @property
    def sends_to(self) -> str | None:
        """Return the address of the cluster, if one is given."""
        return self.address

    def map(
        self,
        work: Callable[[Input], Output],
        inputs: Sequence[Input],
        workers: int | None = None,
        chunk: int = 1,
        needs: Needs = "core",
    ) -> Generator[Output, None, None]:
        """Apply a function to each input, as in `Engine.map`; if it cannot be pickled, it runs in this process."""
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
        yield from _BlockQueue(self, self._cluster(), packed.getvalue(), needs, workers).map(inputs, chunk)

    def shards(self, count: int) -> list[range]:
        """Split the inputs into several ranges per device of the cluster."""
        devices = self._cluster().slots("device", self.cores, self.gpu_share)
        size = max(FEWEST_PER_SHARD, math.ceil(count / (SHARDS_PER_DEVICE * max(1, devices))))
        return [range(start, min(start + size, count)) for start in range(0, count, size)]

    def _cluster(self) -> Cluster:
        self.require_extras()
        from shotproof.core.runtime.ray_cluster import connect

        return connect(self.address)


class _Block:
    """Inputs that are sent together, and their result once it arrives."""

    def __init__(self, inputs: Sequence[Any]) -> None:
        self.inputs = inputs
        self.task: Any = None  # Ray's reference to the future result
        self.deaths = 0
        self.result: tuple[list[Any], Failure | None] | None = None

    def __str__(self) -> str:
        others = f" and {len(self.inputs) - 1} more" if len(self.inputs) > 1 else ""
        return f"{format_value(str(self.inputs[0]))}{others}"


class _BlockQueue:
    """Blocks of one running map, in order."""

    def __init__(self, engine: RayEngine, cluster: Cluster, packed: bytes, needs: Needs, workers: int | None) -> None:
        self.engine, self.cluster, self.needs, self.workers = engine, cluster, needs, workers
        self.work = cluster.put(packed)
        self.pending: deque[_Block] = deque()

    def map(self, inputs: Sequence[Any], chunk: int) -> Generator[Any, None, None]:
        interrupted = False
        try:
            for start in range(0, len(inputs), chunk):
                while len(self.pending) >= BLOCKS_AHEAD * self._slots():
                    yield from self._outputs_of_first()
                while self.workers is not None and len(self._running()) >= self.workers:
                    self._collect_finished()
                block = _Block(inputs[start : start + chunk])
                self._submit(block)
                self.pending.append(block)
            while self.pending:
                yield from self._outputs_of_first()
        except KeyboardInterrupt:
            interrupted = True
            raise
        finally:
            self.cluster.cancel(list(self._running()), at_once=interrupted)

    def _slots(self) -> int:
        if self.workers is not None:
            return self.workers
        return max(1, self.cluster.slots(self.needs, self.engine.cores, self.engine.gpu_share))

    def _running(self) -> dict[Any, _Block]:
        return {block.task: block for block in self.pending if block.result is None}

    def _submit(self, block: _Block) -> None:
        import cloudpickle

        pickled = cloudpickle.dumps(list(block.inputs))
        block.task = self.cluster.submit(self.work, pickled, self.needs, self.engine.cores, self.engine.gpu_share)

    def _outputs_of_first(self) -> Generator[Any, None, None]:
        first = self.pending[0]
        while first.result is None:
            self._collect_finished()
        self.pending.popleft()
        outputs, failure = first.result
        yield from outputs
        if failure is not None:
            raise failure.error()

    def _collect_finished(self) -> None:
        """Wait until any block finishes, and submit lost blocks again."""
        from shotproof.core.runtime.ray_cluster import Died

        running = self._running()
        ready = self.cluster.wait(list(running), SECONDS_BETWEEN_CHECKS)
        for task in ready:
            block = running[task]
            try:
                block.result = _unpickle_result(self.cluster.get(task))
            except Died as died:
                block.deaths += 1
                if block.deaths <= self.engine.retries:
                    self._submit(block)
                else:  # raised in its turn: earlier outputs are kept
                    block.result = [], Failure.of(ShotproofError(self._describe_repeated_deaths(block, died)))
        if not ready:
            self.cluster.require_cores()

    def _describe_repeated_deaths(self, block: _Block, died: ShotproofError) -> str:
        hint = f"try fewer workers, a smaller batch, or more cores per block, e.g. ray(cores={2 * self.engine.cores:g})"
        return f"{died} {block.deaths} times on the same block ({block}): {hint}"


def _unpickle_result(output: bytes) -> tuple[list[Any], Failure | None]:
    try:
        result: tuple[list[Any], Failure | None] = pickle.loads(output)
    except Exception as error:
        reason = f"{first_line(error)}; return a picklable object, or use the engine local"
        raise ShotproofError(f"an output of a worker process cannot be unpickled in this process: {reason}") from error
    return result
