"""The commands that malformed files are given to, on the files of the bench."""

from __future__ import annotations

ALONE = ("--workers", "1", "--no-progress")
TASKS = ("--way", "2", "--shot", "1", "--query", "2", "--tasks", "2", "--split", "test")
CATALOG = "catalog.parquet"
ENCODE = ("encode", CATALOG, "-o", "out/features.parquet", *ALONE, "--cache", "none")
DETECT = ("detect", CATALOG, "-o", "out/attributes.parquet", *ALONE, "--stats")
EVALUATE = ("evaluate", "tasks.parquet", "-f", "features.parquet", "-m", "ncc", "-o", "out/results.parquet", *ALONE)
SAMPLE = ("sample", CATALOG, "-o", "out/tasks.parquet", *TASKS, *ALONE)
# What was evaluated, on which tasks of which items.
EVALUATED = (
    *("results.parquet", "hard-results.parquet", "--tasks", "tasks.parquet", "--tasks", "hard.parquet"),
    *("--catalog", CATALOG, "--features", "features.parquet"),
)
COMPARE = (
    "compare",
    *EVALUATED,
    "--halvings",
    "2",
    *ALONE,
)
REPORT = (
    "report",
    *EVALUATED,
    "--attributes",
    "attributes.parquet",
    "--similarity",
    "similarity.parquet",
    "--projection",
    "none",
    "--interval",
    "sampler",
    "--no-placebo",
    "-o",
    "out/report.html",
    *ALONE,
)
EXPLAIN = (
    "explain",
    "hard.parquet",
    "--against",
    "tasks.parquet",
    "--attributes",
    "attributes.parquet",
    "-f",
    "features.parquet",
    "--results",
    "hard-results.parquet",
    "--catalog",
    CATALOG,
    "-o",
    "out/explain.html",
    *ALONE,
)
TRANSFER = (
    "transfer",
    "hard.parquet",
    "--against",
    "tasks.parquet",
    "-f",
    "features.parquet",
    "-m",
    "ncc",
    "-o",
    "out",
    *ALONE,
)
CHECK = ("check", "results.parquet", "--tasks", "tasks.parquet")
PLAN = ("plan", "results.parquet", "--catalog", CATALOG, "--split", "test")
GEOMETRY = (
    "geometry",
    "features.parquet",
    "--catalog",
    CATALOG,
    "--clean-value",
    "sea",
    "-o",
    "out/geometry.html",
    *ALONE,
)
REFERENCE = (
    "geometry",
    "features.parquet",
    "--catalog",
    CATALOG,
    "--reference",
    "features.parquet",
    "--reference-catalog",
    CATALOG,
    "--permutations",
    "2",
    *ALONE,
)
SIMILARITY = (
    "similarity",
    CATALOG,
    "--features",
    "features.parquet",
    "--texts",
    "texts.parquet",
    "-o",
    "out/similarity.html",
    "--items",
    "out/similarity.parquet",
    *ALONE,
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
MIX = ("mix", "sounds.parquet", "--mapping", "mapping.toml", "--embedding", "none", "-o", "out/mixed", *ALONE)
RUN = ("run", "experiment.toml", *ALONE)
PROFILE = ("--encoder", "pixels(size=2)", "--way", "2", "--query", "1", "--tasks", "2", "-o", "out/profile", *ALONE)
OWN = ("--root", "images", "--encoder", "pixels(size=2)", "-o", "out/mine", *ALONE)
FROM_TABLE = ("catalog", "table.csv", "--layout", "table", "-o", "out/catalog.parquet", *ALONE)
