"""Problems with a cluster are reported in one line, with exit status 2."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime
from shotproof.worlds.shapes import ShapesWorld
from tests.scale.conftest import Nodes


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    ShapesWorld(classes=5, items=4, size=16).write(tmp_path / "world").write(tmp_path / "catalog.parquet")
    return tmp_path / "catalog.parquet"


def sample(catalog: Path, *runtime: str, **environment: str) -> subprocess.CompletedProcess[str]:
    size = ("--shot", "1", "--query", "2", "--tasks", "40", "-o", str(catalog.with_name("tasks.parquet")))
    return subprocess.run(
        [sys.executable, "-m", "shotproof", "sample", str(catalog), "--sampler", "random", *size, *runtime],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )


def nobody() -> str:
    """Return an address at which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


@pytest.mark.parametrize("spelled", ["ray:{}", "ray://{}"])
def test_a_cluster_that_is_not_there(catalog: Path, spelled: str) -> None:
    address = nobody()
    done = sample(catalog, "--engine", spelled.format(address))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: engine 'ray': no cluster ")
    assert address in done.stderr
    assert done.stderr.count("\n") == 1
    by_variable = sample(catalog, "--engine", "ray", RAY_ADDRESS=address)
    assert (by_variable.returncode, address in by_variable.stderr) == (2, True)


@pytest.mark.parametrize("differing", ["ray_version", "python_version"])
def test_a_cluster_of_another_version(catalog: Path, nodes: Nodes, differing: str) -> None:
    from ray._raylet import GcsClient

    client = GcsClient(address=nodes.cluster.address)
    place = (b"CLUSTER_METADATA", b"cluster")
    kept = client.internal_kv_get(*place)
    client.internal_kv_put(place[0], json.dumps({**json.loads(kept), differing: "2.1.0"}).encode(), True, place[1])
    try:
        done = sample(catalog, "--engine", nodes.engine)
    finally:
        client.internal_kv_put(place[0], kept, True, place[1])
    assert (done.returncode, done.stdout) == (2, "")
    assert f"error: engine 'ray': the cluster at {nodes.cluster.address} has another version: " in done.stderr
    assert "2.1.0" in done.stderr
    assert done.stderr.count("\n") == 1


def version_here(_: int) -> str:
    from shotproof import version

    return version.__version__


def test_machines_with_another_shotproof(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shotproof.core.runtime.ray_cluster.__version__", "99.0")
    with pytest.raises(InputError, match=r"this machine has shotproof [\d.]+, expected 99.0"):
        list(Runtime(engine=nodes.engine).map(version_here, range(3), title=None))


def test_a_cluster_of_this_machine_alone_starts_and_ends_with_the_command(catalog: Path) -> None:
    alone = sample(catalog)
    assert alone.returncode == 0, alone.stderr
    expected = catalog.with_name("tasks.parquet").read_bytes()
    done = sample(catalog, "--engine", "ray", RAY_ADDRESS="")
    assert (done.returncode, done.stderr) == (0, alone.stderr)
    assert catalog.with_name("tasks.parquet").read_bytes() == expected
