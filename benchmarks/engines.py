"""The same work by the local engine and by Ray on this machine: what a cluster costs if none is needed.

    python -m benchmarks.engines

The engines take turns, with two workers of one thread each, and ratios are those of the sums. Ray's time includes the
start of its cluster, 3 s or more. CPU seconds, of all processes alive at the end, are reliable on a busy machine too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ENGINES = ("local", "ray")
ROUNDS = 2

PROGRAM = """
import sys, time
import psutil
import shotproof as sp

folder, engine = sys.argv[1:]
began = time.perf_counter()
with sp.runtime(engine=engine, workers=2, cache=None, progress=False):
    images = sp.Catalog.read(f"{folder}/images.parquet")
    encoded = sp.encode(images, "pixels(size=16)")
    catalog, features, _ = sp.worlds.GaussianWorld().draw(classes=40, items=300)
    tasks = sp.sample(catalog, "hardest(effort='high')", features=features, tasks=400)
    results = sp.evaluate(sp.sample(catalog, "random", tasks=4000), features, ["logistic", "pt-map", "tim"])
    digests = encoded.digest, tasks.digest, results.digest
spent = time.perf_counter() - began
family = [psutil.Process(), *psutil.Process().children(recursive=True)]
cores = sum(one.cpu_times().user + one.cpu_times().system for one in family)
print(spent, cores, *digests)
"""


def run() -> None:
    """Time both engines in turn, and check that their outputs agree."""
    import shotproof as sp

    spent, cores = dict.fromkeys(ENGINES, 0.0), dict.fromkeys(ENGINES, 0.0)
    digests_seen = set()
    with tempfile.TemporaryDirectory() as folder:
        sp.worlds.ShapesWorld(classes=20, items=40, size=64).write(Path(folder) / "images").write(
            f"{folder}/images.parquet"
        )
        for _ in range(ROUNDS):
            for engine in ENGINES:
                command = [sys.executable, "-W", "ignore", "-c", PROGRAM, folder, engine]
                one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}
                process = subprocess.run(command, capture_output=True, text=True, check=True, env=one_thread)
                seconds, of_cores, *digests = process.stdout.split()
                spent[engine] += float(seconds)
                cores[engine] += float(of_cores)
                digests_seen.add(tuple(digests))
                print(f"{engine}: {float(seconds):.1f} s, {float(of_cores):.1f} s of cores", flush=True)
    assert len(digests_seen) == 1, "the engines gave different results"
    ratio, of_cores_ratio = spent["ray"] / spent["local"], cores["ray"] / cores["local"]
    print(f"ray to local: {ratio:.2f} in time, {of_cores_ratio:.2f} in seconds of cores")


if __name__ == "__main__":
    run()
