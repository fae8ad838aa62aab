"""The commands that malformed files are given to, on the files of the bench."""

from __future__ import annotations

ALONE = ("--workers", "1", "--no-progress")
TASKS = ("--way", "2", "--shot", "1", "--query", "2", "--tasks", "2", "--split", "test")
CATALOG = "catalog.parquet"
ENCODE = ("encode", CATALOG, "-o", "out/features.parquet", *ALONE, "--cache", "none")
DETECT = ("detect", CATALOG, "-o", "out/attributes.parquet", *ALONE, "--stats")
EVALUATE = ("evaluate", "tasks.parquet", "features.parquet", "-m", "ncc", "-o", "out/results.parquet", *ALONE)
SAMPLE = ("sample", CATALOG, "-o", "out/tasks.parquet", *TASKS, *ALONE)
# What was evaluated, on which tasks of which items.
EVALUATED = (
    *("results.parquet", "hard-results.parquet", "tasks.parquet", "hard.parquet"),
    *(CATALOG, "features.parquet"),
)
COMPARE = ("compare", *EVALUATED, "--halvings", "2", *ALONE)
REPORT = (
    *("compare", *EVALUATED, "attributes.parquet", "similarity.parquet"),
    *("--projection", "none", "--interval", "sampler", "--no-placebo", "-o", "out/report.html", *ALONE),
)
EXPLAIN = (
    *("explain", "hardness", "hard.parquet", "attributes.parquet", "features.parquet", "hard-results.parquet", CATALOG),
    *("--against", "tasks.parquet", "-o", "out/explain.html", *ALONE),
)
TRANSFER = (
    *("explain", "transfer", "hard.parquet", "features.parquet", "--against", "tasks.parquet"),
    *("-m", "ncc", "-o", "out", *ALONE),
)
VERIFY = ("share", "verify", "results.parquet", "tasks.parquet")
PLAN = ("explain", "plan", "results.parquet", CATALOG, "--split", "test")
FEATURES = (
    *("explain", "features", "features.parquet", CATALOG),
    *("--clean-value", "sea", "-o", "out/geometry.html", *ALONE),
)
REFERENCE = (
    *("explain", "features", "features.parquet", CATALOG, "--against", "features.parquet", "--against", CATALOG),
    *("--permutations", "2", *ALONE),
)
SIMILARITY = (
    *("explain", "similarity", CATALOG, "features.parquet", "--texts", "texts.parquet"),
    *("-o", "out/similarity.html", "--items", "out/similarity.parquet", *ALONE),
)
TRAIN = (
    "train",
    CATALOG,
    "--objective",
    "protonet",
    "--backbone",
    "conv64f(pools=2, pooling='mean')",
    "--val-split",
    "none",
    "--way",
    "2",
    "--shot",
    "1",
    "--query",
    "1",
    "--epochs",
    "1",
    "--tasks",
    "1",
    "--set",
    "size=16",
    "-o",
    "out/x.model",
    *ALONE,
)
MIX = ("mix", "sounds.parquet", "--mapping", "mapping.toml", "--set", "embedding=none", "-o", "out/mixed", *ALONE)
RUN = ("run", "experiment.toml", *ALONE)
PROFILE = ("--encoder", "pixels(size=2)", "--way", "2", "--query", "1", "--tasks", "2", "-o", "out/profile", *ALONE)
OWN = ("--root", "images", "--encoder", "pixels(size=2)", "-o", "out/mine", *ALONE)
FROM_TABLE = ("catalog", "table.csv", "--layout", "table", "-o", "out/catalog.parquet", *ALONE)
