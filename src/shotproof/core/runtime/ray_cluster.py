"""Connection to a Ray cluster, one per process, with Ray's errors as plain messages."""

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

HERE = "local"  # Ray's address of a new cluster on this machine
BY_CLIENT = "ray://"  # prefix of addresses for Ray's client
OBJECT_STORE = 200 * 2**20  # bytes, in a cluster on this machine; Ray spills the rest to disk
CONNECT_TIMEOUT = 5.0  # seconds
NODES_MAX_AGE = 2.0  # seconds for which the list of machines is reused

_connected: Cluster | None = None


class Died(ShotproofError):
    """Death of a worker or a machine, with the loss of its block."""


class _Machine(NamedTuple):
    cores: float
    gpus: float


class Cluster:
    """Cluster that this process is connected to.

    address: the address as requested; None if the user connected this process beforehand
    """

    def __init__(self, address: str | None) -> None:
        import ray

        self.address = address
        self._ray = ray
        self._listed_at = -NODES_MAX_AGE
        self._machines: list[_Machine] = []
        self._had_cores = False
        self._do_block = self._ray.remote(do_block)

    def put(self, content: bytes) -> Any:
        """Put bytes into the object store, for each machine to fetch once, and return a reference."""
        try:
            return self._ray.put(content)
        except self._ray.exceptions.RayError as error:
            raise ShotproofError(
                f"the data for worker processes does not fit into the cluster's object store: {first_line(error)}"
            ) from error

    def submit(self, work: Any, block: bytes, needs: Needs, cores: float, share: float) -> Any:
        """Submit a block to the cluster, and return a reference to its pickled outputs."""
        block_cores, gpus = self._block_resources(needs, cores, share)
        options = {"num_cpus": block_cores, "num_gpus": gpus, "max_retries": 0, "scheduling_strategy": "SPREAD"}
        threads = max(1, int(block_cores)) if needs == "device" else 1
        # In a list, so that Ray passes the reference rather than the content, which a worker keeps between blocks.
        return self._do_block.options(**options).remote([work], block, threads, __version__, self._this_machine())

    def wait(self, tasks: Sequence[Any], seconds: float) -> list[Any]:
        """Wait for tasks, and return those that are done: at least one, unless the time runs out."""
        ready: list[Any] = self._ray.wait(list(tasks), num_returns=1, timeout=seconds)[0]
        return ready

    def get(self, task: Any) -> bytes:
        """Return the output of a task.

        Raises:
            Died: the output is lost; the task may be repeated.
            ShotproofError: the task cannot run on this cluster.
        """
        try:
            output: bytes = self._ray.get(task)
        except self._ray.exceptions.OutOfMemoryError as error:
            raise Died("a worker of the cluster ran out of memory") from error
        except (self._ray.exceptions.NodeDiedError, self._ray.exceptions.ObjectLostError) as error:
            raise Died("a machine of the cluster died") from error
        except self._ray.exceptions.WorkerCrashedError as error:
            raise Died("a worker of the cluster died, possibly out of memory,") from error
        except self._ray.exceptions.RayError as error:
            if "No module named 'shotproof" in str(error):
                raise ShotproofError(
                    "shotproof is not installed on a machine of the cluster: install it on all of them"
                ) from error
            raise ShotproofError(f"engine 'ray': {_last_line(error)}") from error
        return output

    def cancel(self, tasks: Sequence[Any], *, at_once: bool) -> None:
        """Cancel tasks whose results are no longer needed: at their next input, then by force; at once if asked."""
        if at_once and self.address == HERE:
            self._ray.shutdown()
            return
        with contextlib.suppress(
            self._ray.exceptions.RayError, RuntimeError
        ):  # the cluster is gone, and the tasks with it
            if not at_once and tasks:
                for task in tasks:
                    self._ray.cancel(task)
                tasks = self._ray.wait(list(tasks), num_returns=len(tasks), timeout=GRACE_SECONDS)[1]
            for task in tasks:
                self._ray.cancel(task, force=True)

    def slots(self, needs: Needs, cores: float, share: float) -> int:
        """Return the number of blocks that the machines can run at a time."""
        block_cores, gpus = self._block_resources(needs, cores, share)
        blocks = [
            min(machine.cores // block_cores, machine.gpus // gpus if gpus else machine.cores)
            for machine in self._list_machines()
        ]
        return int(sum(blocks))

    def require_cores(self) -> None:
        """Raise ShotproofError if all machines of the cluster have disappeared."""
        if self._had_cores and not any(machine.cores for machine in self._list_machines()):
            raise ShotproofError("the cluster has no machines left; finished parts are kept")

    def _block_resources(self, needs: Needs, cores: float, share: float) -> tuple[float, float]:
        """Return the numbers of cores and GPUs that a block needs."""
        machines = [machine for machine in self._list_machines() if machine.cores]
        with_gpus = [machine for machine in machines if machine.gpus]
        if needs == "core" or not machines:
            return cores, 0.0
        if needs == "share":
            return cores, share if with_gpus else 0.0
        if with_gpus:
            return min(max(1.0, machine.cores // machine.gpus) for machine in with_gpus), 1.0
        return min(machine.cores for machine in machines), 0.0

    def _list_machines(self) -> list[_Machine]:
        if time.monotonic() - self._listed_at >= NODES_MAX_AGE:
            resources = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
            self._machines = [_Machine(node.get("CPU", 0.0), node.get("GPU", 0.0)) for node in resources]
            self._had_cores |= any(machine.cores for machine in self._machines)
            self._listed_at = time.monotonic()
        return self._machines

    def _this_machine(self) -> str:
        machine: str = self._ray.get_runtime_context().get_node_id()
        return machine


def connect(address: str | None) -> Cluster:
    """Connect to the cluster at an address, or at RAY_ADDRESS, or start one on this machine.

    Raises:
        InputError: there is no cluster, or it has another version of Ray or Python.
    """
    global _connected
    import ray

    requested = address or os.environ.get("RAY_ADDRESS") or HERE
    if requested.startswith("//"):  # of ray://HOST:PORT, the option has only the part after the colon
        requested = f"ray:{requested}"
    if ray.is_initialized():
        if _connected is not None and _connected.address in (None, requested):
            return _connected
        if _connected is None:
            _connected = Cluster(None)  # connected by the user
            return _connected
        ray.shutdown()
    _silence_ray()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Otherwise Ray warns that a later version will leave CUDA_VISIBLE_DEVICES alone.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1")
    try:
        if requested == HERE:
            _start_local_cluster()
        else:
            _require_listener(requested)
            ray.init(address=requested, log_to_driver=False, logging_level=logging.ERROR)
    except ImportError as error:
        raise MissingExtra("engine 'ray'", "ray") from error
    except (RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
        raise InputError(f"engine 'ray': {_describe_failure(requested, error)}") from error
    _connected = Cluster(requested)
    return _connected


def _silence_ray() -> None:
    """Keep Ray from printing to standard output, into tables and JSON, how each worker died; our errors report it."""
    from ray._private import worker

    worker.print_to_stdstream = lambda *_, **__: None


def _start_local_cluster() -> None:
    """Start a cluster that listens on the loopback interface only, so no other machine can reach it."""
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


def _require_listener(address: str) -> None:
    """Raise ConnectionError if nothing listens at an address. Ray itself would wait for minutes, or end the process."""
    from ray._private.services import resolve_ip_for_localhost

    host, _, port = address.removeprefix(BY_CLIENT).rpartition(":")
    if not host or not port.isdigit():
        return  # `auto`, or a scheme of another package
    # For a cluster on this machine, Ray connects to the address that other machines see, except with its client.
    resolved_host = host.strip("[]") if address.startswith(BY_CLIENT) else resolve_ip_for_localhost(host.strip("[]"))
    try:
        socket.create_connection((resolved_host, int(port)), CONNECT_TIMEOUT).close()
    except (OSError, OverflowError) as error:
        raise ConnectionError(f"{resolved_host}: {first_line(error)}") from error


def _describe_failure(address: str, error: Exception) -> str:
    if "version" in str(error).lower() and "ray" in str(error).lower():
        return f"the cluster at {address} has another version: {' '.join(str(error).split())}"
    if isinstance(error, ConnectionError):
        token = ", with its RAY_AUTH_MODE and RAY_AUTH_TOKEN set here" if "timeout" in str(error) else ""
        reason = first_line(error)
        return f"no cluster responds at {address} ({reason}): expected a running one (`ray start --head`){token}"
    return f"the cluster at {address} cannot be used: {first_line(error)}"


def _last_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1].strip() if lines else type(error).__name__
