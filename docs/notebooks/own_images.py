# %% [markdown]
# # Your own images in five lines
#
# Any folder that has one folder per class will do. Here a world of drawn shapes is written first, so that the notebook runs as it is.

# %%
import shotproof as sp

sp.worlds.ShapesWorld(classes=10, items=40, size=32).write("shapes")
study = sp.Study("shapes", encoder="pixels(size=8)")  # your folder, and "lite0", a real network
study.evaluate(["ncc", "ridge", "knn(k=3)"], on=["random", "fewstab"], shots=[5], query=10, tasks=200)
comparison = study.compare(metric="wacc")

# %% [markdown]
# In FewSTAB's tasks an attribute is planted in each class's support, and its queries lack it. The gap is what is lost from random
# tasks to these, in points of the accuracy on each task's worst class, with its interval.

# %%
gaps = comparison.to_pandas().query("quantity == 'gap'")
gaps[["method", "metric", "mean", "low", "high"]].round(1)

# %%
comparison.plot("gaps")

# %% [markdown]
# What may be said of it, and no more:

# %%
print("\n".join(comparison.verdict()))
