"""A Ray cluster as the engine sees it: connected once per process, and what goes wrong with it in plain words."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from shotproof.core.errors import InputError, MissingExtra, ShotproofError, first_line
from shotproof.core.runtime.engine import Needs
from shotproof.core.runtime.local import GRACE_SECONDS, usable_cores
from shotproof.core.runtime.ray_worker import do_block
from shotproof.version import __version__

HERE = "local"  # how Ray spells a new cluster on this machine
BY_CLIENT = "ray://"  # and one whose client is asked
OBJECT_STORE = 200 * 2**20  # bytes, of a cluster on this machine; what is more goes to disk
SECONDS_TO_ANSWER = 5.0
SECONDS_OF_A_LOOK = 2.0  # for which the list of machines is believed

_connected: Cluster | None = None


class Died(ShotproofError):
    """A worker or a machine died, and what it did is lost."""


class _Machine(NamedTuple):
    cores: float
    gpus: float


class Cluster:
    """A cluster that this process is connected to.

    address: how it was asked for; None where the user has connected this process before
    """

    def __init__(self, address: str | None) -> None:
        import ray

        self.address = address
        self._ray = ray
        self._looked = -SECONDS_OF_A_LOOK
        self._machines: list[_Machine] = []
        self._had_cores = False
        self._do_block = self._ray.remote(do_block)

    def put(self, content: bytes) -> Any:
        """Keep bytes in the object store, for any machine to fetch once; gives a reference."""
        try:
            return self._ray.put(content)
        except self._ray.exceptions.RayError as error:
            raise ShotproofError(
                f"the work does not fit into the cluster's object store: {first_line(error)}"
            ) from error

    def submit(self, work: Any, block: bytes, needs: Needs, cores: float, share: float) -> Any:
        """Have a block done somewhere; gives a reference to its pickled outputs."""
        taken, gpus = self._taken(needs, cores, share)
        options = {"num_cpus": taken, "num_gpus": gpus, "max_retries": 0, "scheduling_strategy": "SPREAD"}
        threads = max(1, int(taken)) if needs == "device" else 1
        # In a list, so that Ray hands over the reference and not the content, which a worker keeps from block to block.
        return self._do_block.options(**options).remote([work], block, threads, __version__, self._this_machine())

    def wait(self, tasks: Sequence[Any], seconds: float) -> list[Any]:
        """Those that are done, at least one unless time runs out."""
        ready: list[Any] = self._ray.wait(list(tasks), num_returns=1, timeout=seconds)[0]
        return ready

    def get(self, task: Any) -> bytes:
        """What a task gave.

        Raises:
            Died: It is lost, and may be done again.
            ShotproofError: It cannot be done on this cluster.
        """
        try:
            output: bytes = self._ray.get(task)
        except self._ray.exceptions.OutOfMemoryError as error:
            raise Died("a worker of the cluster ran out of memory") from error
        except (self._ray.exceptions.NodeDiedError, self._ray.exceptions.ObjectLostError) as error:
            raise Died("a machine of the cluster died") from error
        except self._ray.exceptions.WorkerCrashedError as error:
            raise Died("a worker of the cluster died, perhaps for want of memory,") from error
        except self._ray.exceptions.RayError as error:
            if "No module named 'shotproof" in str(error):
                raise ShotproofError("a machine of the cluster has no shotproof: install it on all of them") from error
            raise ShotproofError(f"engine 'ray': {_last_line(error)}") from error
        return output

    def cancel(self, tasks: Sequence[Any], *, at_once: bool) -> None:
        """End what nobody waits for any more: at its next input, or after a while, or at once, with its process."""
        if at_once and self.address == HERE:
            self._ray.shutdown()
            return
        with contextlib.suppress(self._ray.exceptions.RayError, RuntimeError):  # the cluster is gone: so are they
            if not at_once and tasks:
                for task in tasks:
                    self._ray.cancel(task)
                tasks = self._ray.wait(list(tasks), num_returns=len(tasks), timeout=GRACE_SECONDS)[1]
            for task in tasks:
                self._ray.cancel(task, force=True)

    def places(self, needs: Needs, cores: float, share: float) -> int:
        """How many blocks the machines can do at a time."""
        taken, gpus = self._taken(needs, cores, share)
        fitting = [min(one.cores // taken, one.gpus // gpus if gpus else one.cores) for one in self._look()]
        return int(sum(fitting))

    def require_cores(self) -> None:
        """Refuse to wait for machines that were there and are gone."""
        if self._had_cores and not any(one.cores for one in self._look()):
            raise ShotproofError("no machine of the cluster is left; finished parts are kept")

    def _taken(self, needs: Needs, cores: float, share: float) -> tuple[float, float]:
        """The cores and the GPUs that a block takes."""
        machines = [one for one in self._look() if one.cores]
        with_gpus = [one for one in machines if one.gpus]
        if needs == "core" or not machines:
            return cores, 0.0
        if needs == "share":
            return cores, share if with_gpus else 0.0
        if with_gpus:
            return min(max(1.0, one.cores // one.gpus) for one in with_gpus), 1.0
        return min(one.cores for one in machines), 0.0

    def _look(self) -> list[_Machine]:
        if time.monotonic() - self._looked >= SECONDS_OF_A_LOOK:
            found = [one["Resources"] for one in self._ray.nodes() if one["Alive"]]
            self._machines = [_Machine(one.get("CPU", 0.0), one.get("GPU", 0.0)) for one in found]
            self._had_cores |= any(one.cores for one in self._machines)
            self._looked = time.monotonic()
        return self._machines

    def _this_machine(self) -> str:
        machine: str = self._ray.get_runtime_context().get_node_id()
        return machine


def connect(address: str | None) -> Cluster:
    """The cluster at an address, else that of RAY_ADDRESS, else a new one on this machine.

    Raises:
        InputError: There is none, or it is of another version.
    """
    global _connected
    import ray

    wanted = address or os.environ.get("RAY_ADDRESS") or HERE
    wanted = f"ray:{wanted}" if wanted.startswith("//") else wanted  # ray://HOST:PORT is the name, a colon, and that
    if ray.is_initialized():
        if _connected is not None and _connected.address in (None, wanted):
            return _connected
        if _connected is None:
            _connected = Cluster(None)  # the user has chosen it
            return _connected
        ray.shutdown()
    _keep_quiet()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray would warn that a later version of it leaves CUDA_VISIBLE_DEVICES alone.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1")
    try:
        if wanted == HERE:
            _start_here()
        else:
            _require_answer(wanted)
            ray.init(address=wanted, log_to_driver=False, logging_level=logging.ERROR)
    except ImportError as error:
        raise MissingExtra("engine 'ray'", "ray") from error
    except (RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
        raise InputError(f"engine 'ray': {_why_not(wanted, error)}") from error
    _connected = Cluster(wanted)
    return _connected


def _keep_quiet() -> None:
    """Ray would print to standard output, amid tables and JSON, how each worker died; we say it where it matters."""
    from ray._private import worker

    worker.print_to_stdstream = lambda *_, **__: None


def _start_here() -> None:
    """Start a cluster that nobody else can reach: it listens on the loopback interface alone."""
    import ray
    from ray._private import ray_constants

    reachable = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        ray.init(
            address=HERE,
            num_cpus=usable_cores(),
            object_store_memory=OBJECT_STORE,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            _system_config={"worker_niceness": 0},
        )
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = reachable


def _require_answer(address: str) -> None:
    """Refuse an address at which nobody listens: Ray itself waits for minutes, and may end the process."""
    from ray._private.services import resolve_ip_for_localhost

    host, _, port = address.removeprefix(BY_CLIENT).rpartition(":")
    if not host or not port.isdigit():
        return  # `auto`, or a scheme of another package
    # Of a cluster on this machine Ray takes the address that other machines see, unless by its client.
    reached = host.strip("[]") if address.startswith(BY_CLIENT) else resolve_ip_for_localhost(host.strip("[]"))
    try:
        socket.create_connection((reached, int(port)), SECONDS_TO_ANSWER).close()
    except (OSError, OverflowError) as error:
        raise ConnectionError(f"{reached}: {first_line(error)}") from error


def _why_not(address: str, error: Exception) -> str:
    if "version" in str(error).lower() and "ray" in str(error).lower():
        return f"the cluster at {address} is of another version: {' '.join(str(error).split())}"
    if isinstance(error, ConnectionError):
        token = " and RAY_AUTH_MODE and RAY_AUTH_TOKEN as it has them" if "timeout" in str(error) else ""
        return (
            f"no cluster answers at {address} ({first_line(error)}): expected one that runs (`ray start --head`){token}"
        )
    return f"the cluster at {address} cannot be used: {first_line(error)}"


def _last_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1].strip() if lines else type(error).__name__
