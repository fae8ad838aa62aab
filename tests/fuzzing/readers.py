"""Python that reads a damaged file where no command alone does."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import shotproof as sp
from tests.chat_servers import chat_server
from tests.fuzzing.bench import KEPT, TRAINING
from tests.fuzzing.commands import CATALOG


def reading(file: str) -> Callable[[], Any]:
    """Read it as whatever it is."""
    return lambda: repr(sp.read(file))


def resume_training() -> None:
    """Go on from a checkpoint."""
    out = Path("out")
    out.mkdir(exist_ok=True)
    shutil.copy("failed.model.checkpoint", out / "failed.model.checkpoint")
    with sp.Runtime(workers=1, progress=False):
        sp.train(
            sp.Catalog.read(CATALOG),
            "protonet",
            output=out / "failed.model",
            val_split=None,
            lr=1e30,
            **{**TRAINING, "epochs": 2},
        )


def with_kept(file: str, part: str, work: Callable[[sp.Runtime], Any]) -> Callable[[], None]:
    """Work with a cache in which a file of a part of it has the content of this file."""

    def command() -> None:
        cache = Path("out", KEPT)
        shutil.copytree(KEPT, cache)
        (kept,) = cache.glob(f"{part}/**/*.*")
        shutil.copy(file, kept)
        work(sp.Runtime(workers=1, cache=cache, progress=False))

    return command


def encode_again(runtime: sp.Runtime) -> None:
    """Encode with what was kept."""
    found = sp.encode(sp.Catalog.read(CATALOG), "pixels(size=2)", runtime=runtime)
    assert found.digest == sp.Features.read("features.parquet").digest, "what was kept is taken for something else"


def adapt_again(runtime: sp.Runtime) -> None:
    """Adapt a network to items that were kept decoded."""
    data: dict[str, Any] = {"catalog": sp.Catalog.read(CATALOG), "model": sp.Model.read("protonet.model")}
    sp.evaluate(sp.TaskSet.read("tasks.parquet"), methods=["finetune(steps=1)"], runtime=runtime, **data)


def caption() -> None:
    """All captions by a server that answers with the content of a file."""
    with chat_server() as server, sp.Runtime(workers=1, cache=None, progress=False):
        server.faults = ["raw " + Path("answer.json").read_bytes().decode("utf-8", "replace")] * 100
        sp.detect(sp.Catalog.read(CATALOG), f"endpoint(model='m', url='{server.url}', retries=0)")
