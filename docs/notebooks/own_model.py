# %% [markdown]
# # A PyTorch model, trained and measured
#
# A small network is trained on classes whose background often gives them away, and measured on other classes.

# %%
import shotproof as sp

world = sp.worlds.ShapesWorld(classes=20, items=40, size=24, train_classes=12, shortcut_classes=12)
catalog = world.write("trained")
settings = {"size": 16, "epochs": 2, "tasks": 40, "shot": 5, "query": 5}
model = sp.train(
    catalog, "protonet", backbone="conv64f", split="train", val_split=None, output="shapes.model", **settings
)
model

# %% [markdown]
# A model is an encoder and a method.

# %%
features = sp.encode(catalog.in_split("test"), "model:shapes.model")
random = sp.sample(catalog, "random", split="test", shot=5, query=10, tasks=200, seed=0)
comparison = sp.compare([sp.evaluate(random, features, ["model:shapes.model", "cosine"])])
comparison.to_pandas()[["method", "metric", "mean", "low", "high"]].round(1)
