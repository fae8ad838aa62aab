# %% [markdown]
# # Which attribute breaks it?
#
# In this world every class has five attributes, of which some go with the class in most of its pictures.

# %%
import shotproof as sp

world = sp.worlds.ShapesWorld(classes=10, items=60, size=32, correlation=0.7, seed=1)
catalog = world.write("tied-shapes")
attributes = world.attributes()
features = sp.encode(catalog, "pixels(size=8)")
shape = {"shot": 5, "query": 10, "seed": 0}
random = sp.sample(catalog, "random", tasks=200, **shape)
hard = sp.sample(catalog, "hardest", features=features, like=random, seed=0)

# %% [markdown]
# `hardest` searches supports for which the answers to the random tasks' queries are worst. What sets them apart: the
# attributes whose share differs more between support and query than in random tasks, in points.

# %%
explained = sp.explain(hard, attributes, against=[random])
[(attribute.attribute, round(explained.excess(attribute).mean, 1)) for attribute in explained.attributes[:5]]

# %% [markdown]
# And what does it cost a classifier?

# %%
results = [sp.evaluate(tasks, features, "ncc") for tasks in (random, hard)]
lost = sp.compare(results).to_pandas().query("quantity != 'accuracy'")
lost[["tasks", "metric", "quantity", "mean", "low", "high"]].round(1)
