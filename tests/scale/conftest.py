"""Fixtures: a Ray cluster of three nodes and an object store, on the loopback interface of this machine."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from shotproof.cli.app import app

SECRET = "never-to-be-shown"
NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
# A dead node is noticed after two seconds rather than 15; a slow node is not taken for dead.
FAST_DETECTION = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 60_000,
    "health_check_failure_threshold": 4,
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder: they need Ray."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.scale)


class Nodes:
    """Cluster whose nodes can be added and killed."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(initialize_head=True, head_node_args={**NODE, "_system_config": FAST_DETECTION})
        self.engine = f"ray:{self.cluster.address}"
        for _ in range(2):
            self.add()

    def add(self, **resources: Any) -> Any:
        """Add a node."""
        node = self.cluster.add_node(**{**NODE, **resources})
        self.cluster.wait_for_nodes()
        return node

    def remove(self, node: Any) -> None:
        """Kill a node without notice, as if its machine died; its work is lost."""
        self.cluster.remove_node(node, allow_graceful=False)
        self.cluster.wait_for_nodes()

    def kill_once_at_work(self, node: Any, log: Path) -> threading.Thread:
        """Kill a node as soon as it has written its id to the log of working nodes."""

        def watch() -> None:
            while not (log.is_file() and node.node_id in log.read_text()):
                if done.wait(0.02):
                    return
            self.remove(node)

        done = threading.Event()
        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        return thread


@pytest.fixture(scope="session")
def nodes() -> Iterator[Nodes]:
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # the loopback interface
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    logging.getLogger("ray").setLevel(logging.ERROR)
    started = Nodes()
    yield started
    ray.shutdown()
    started.cluster.shutdown()


def shotproof(*arguments: str | Path) -> str:
    """Run a command in this process, which stays connected to the cluster, and return its output."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, (arguments, result.output, result.exception)
    return result.stdout


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """Start an S3 server for the session, and return its address."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it would log every request
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Create an empty bucket, accessible with credentials from the environment, and return its URL."""
    import boto3

    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    store = boto3.resource("s3").Bucket("shotproof-tests")
    store.create()
    yield "s3://shotproof-tests"
    store.objects.all().delete()
    store.delete()
