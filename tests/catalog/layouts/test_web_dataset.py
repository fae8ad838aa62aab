from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from shotproof.catalog.layout import read_layout
from shotproof.core.errors import InputError
from shotproof.media.images import open_image


def png(value: int) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.full((4, 4, 3), value, np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


def write_shard(path: Path, members: dict[str, bytes]) -> None:
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w") as shard:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            shard.addfile(entry, io.BytesIO(data))


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    for number, split in enumerate(("train", "train", "val")):
        members = {}
        for sample in range(3):
            value = 10 * number + sample
            members |= {f"a/{value:04}.png": png(value), f"a/{value:04}.cls": str(sample).encode()}
            members[f"a/{value:04}.json"] = b'{"species": "owl%d"}' % sample
        write_shard(tmp_path / f"shards/birds-{split}-{number:06}.tar", members)
    return tmp_path / "shards"


def test_samples_are_read_in_place(shards: Path) -> None:
    catalog = read_layout(shards, "webdataset")
    assert catalog.items[0] == "birds-train-000000.tar!/a/0000.png"
    assert catalog.table.column("label").to_pylist() == ["0", "1", "2"] * 3
    assert catalog.table.column("split").to_pylist() == ["train"] * 6 + ["val"] * 3
    assert [open_image(path).getpixel((0, 0))[0] for path in catalog.paths] == [0, 1, 2, 10, 11, 12, 20, 21, 22]


def test_one_shard_and_a_field_of_json(shards: Path) -> None:
    catalog = read_layout(shards / "birds-val-000002.tar", "webdataset(label='json', field='species')")
    assert catalog.table.column("label").to_pylist() == ["owl0", "owl1", "owl2"]
    assert catalog.table.column("split").to_pylist() == ["val"] * 3
    assert open_image(catalog.paths[1]).getpixel((0, 0))[0] == 21


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"a.png": b"", "a.txt": b""}, "sample 'a' has no member 'cls': it has png, txt"),
        ({"a.png": b"", "a.jpg": b"", "a.cls": b""}, "sample 'a' has 2 images or sounds, expected one"),
        ({"a.cls": b"1"}, "no shard has a member .* jpg"),
    ],
)
def test_what_does_not_fit_is_told(tmp_path: Path, members: dict[str, bytes], told: str) -> None:
    write_shard(tmp_path / "shards/0.tar", members)
    with pytest.raises(InputError, match=told):
        read_layout(tmp_path / "shards", "webdataset")


def test_a_folder_without_shards_and_a_field_that_lacks(shards: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no shard"):
        read_layout(tmp_path / "empty", "webdataset")
    with pytest.raises(InputError, match=r"text or number .* 'genus'"):
        read_layout(shards, "webdataset(label='json', field='genus')")
    (shards / "broken.tar").write_bytes(b"no tar" * 1000)
    with pytest.raises(InputError, match=r"broken.tar! cannot be read: broken.tar is not .*tar"):
        read_layout(shards, "webdataset")
