# %% [markdown]
# # Comparing two methods so that a reviewer believes it
#
# Both on the same tasks, the difference taken task by task, under the interval that answers the question, and with as many tasks as it takes.

# %%
import shotproof as sp

catalog = sp.worlds.ShapesWorld(classes=12, items=50, size=32).write("compared")
features = sp.encode(catalog, "pixels(size=8)")
tasks = sp.sample(catalog, "random", shot=5, query=10, tasks=300, seed=0)
results = sp.evaluate(tasks, features, ["ncc", "cosine", "ridge"])

# %% [markdown]
# `sampler` says whether it would hold for other tasks of these very images; `images`, whether it would for other images of these classes.

# %%
comparison = sp.compare([results, tasks, catalog, features], intervals=["sampler", "images"])
pairs = comparison.to_pandas("pairs")
pairs[["a", "b", "metric", "interval", "mean", "low", "high"]].round(2)

# %%
comparison.plot("intervals")

# %% [markdown]
# How many tasks would tell two methods apart that differ by half a point, where the differences of tasks vary as they do here?

# %%
accuracies = {method: results.counts(method).accuracy_by_task() for method in ("ncc", "ridge")}
sp.planning.tasks_needed(0.5, (accuracies["ncc"] - accuracies["ridge"]).var(ddof=1))
