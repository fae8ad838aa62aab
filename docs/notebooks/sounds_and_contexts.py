# %% [markdown]
# # Sounds and contexts
#
# Does a classifier know a sound by the background behind it? A small world of synthetic sounds is mixed with backgrounds, so
# that the context of each is known.

# %%
import shotproof as sp

world = sp.worlds.SoundsWorld(foregrounds=8, backgrounds=6, items=12)
recordings = world.write("sounds")
catalog = sp.mix(recordings, world.mapping(), "mixed", sp.sounds.MixSettings(on_the_fly=True))
catalog

# %% [markdown]
# Matched tasks: the same classes and the same supports, with queries in the same background (`iid`), in others (`ood`), and in those of
# the other classes (`hard-ood`).

# %%
features = sp.encode(catalog, "logmel")
sets = [sp.sample(catalog, name, shot=3, query=5, tasks=200, seed=0) for name in ("iid", "ood", "hard-ood")]
results = [sp.evaluate(tasks, features, ["ncc", "ridge"]) for tasks in sets]
lost = sp.compare(results).to_pandas().query("quantity != 'accuracy'")
lost[["tasks", "method", "metric", "quantity", "mean", "low", "high"]].round(1)
