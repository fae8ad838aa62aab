# %% [markdown]
# # Change one thing
#
# How much does a classifier lose if its queries are blurred, or if only their background changes? Whatever is lost is lost because of the
# change, since the items stay the same. In this world of drawn shapes every class has a favorite background, and the mask of each shape
# is known.

# %%
from pathlib import Path

import pyarrow as pa
from PIL import Image

import shotproof as sp

world = sp.worlds.ContextWorld(concepts=6, contexts=6, figures=32, size=32)
pictures = world.write("shapes").to_pandas()
contexts = [context for context in sorted(set(pictures["context"])) if context != "none"]
labels = sorted(set(pictures["label"]))
Path("shapes/masks").mkdir(exist_ok=True)


def background_of(label: str, number: int) -> str:
    """Return the background of a figure: its class's own for three of four, each in turn for the others."""
    return contexts[number // 4 % 6 if number % 4 == 0 else labels.index(label)]


rows = []
for source, versions in pictures.groupby("source"):
    label, number = versions["label"].iloc[0], int(source.rpartition("/")[2])
    files = versions.set_index("context")
    mask = f"masks/{source.replace('/', '-')}.png"
    clean = Image.open(f"shapes/{files.loc['none', 'path']}").convert("L")  # a black shape on white
    clean.point(lambda value: 255 * (value < 128)).save(f"shapes/{mask}")
    path = files.loc[background_of(label, number), "path"]
    rows.append({"item": source, "path": path, "label": label, "split": "all", "mask": mask})
catalog = sp.Catalog(pa.Table.from_pylist(rows), Path("shapes"))
catalog

# %% [markdown]
# ## Blur
# The same tasks, with their queries blurred more and more.

# %%
study = sp.Study(catalog, encoder="pixels(size=8)", attributes=[])
study.evaluate(["ncc", "ridge"], on="random", shots=[3], query=6, tasks=200)
study.change([f"blur(severity={severity})" for severity in (1, 3, 5)])
numbers = study.compare().to_pandas().query("metric == 'acc' and quantity == 'skill_lost' and interval == 'images'")
numbers[["tasks", "method", "mean", "low", "high"]].round(1)

# %% [markdown]
# ## Another background
# `only-background` fills the shape in. `mixed-rival` puts it on the background of another class of its task, and is compared with
# `mixed-same`, which puts it on the background of another picture of its class. Both are cut and pasted alike, so only the background
# differs.

# %%
study.change(["only-background", "mixed-rival"])
numbers = study.compare().to_pandas().query("metric == 'acc' and quantity == 'skill_lost' and interval == 'images'")
numbers[["tasks", "reference", "method", "mean", "low", "high"]].tail(6).round(1)

# %% [markdown]
# What may be said of it. More than 100% of the skill can be lost, because the background of each query points at a wrong class.

# %%
print("\n".join(study.verdict()))
