# %% [markdown]
# # From a trained model to a card
#
# A robustness card says how a classifier fares on every axis that the data allows, beside baselines on the same tasks.

# %%
import shotproof as sp

world = sp.worlds.ScenesWorld(items=14, size=32, at_home=0.9)  # animals that mostly stand where they live
trained = world.write("training", "train")
settings = {"size": 32, "epochs": 2, "tasks": 60, "shot": 5, "query": 5}
sp.train(trained, "protonet", backbone="conv64f", split="train", val_split=None, output="animals.model", **settings)

# %% [markdown]
# Other animals, evenly in every place:

# %%
world.write("animals", "test").write("animals.parquet")
options = {"context_column": "background", "query": 8, "quick": True}
profile = sp.profile("animals.parquet", "card", model="animals.model", method="ncc", **options)
print("\n".join(profile.card.verdict))
profile

# %% [markdown]
# `card/card.html` is the page. In CI, `shotproof gate card/card.json --max-skill-lost 15` fails if a limit is conclusively broken.
