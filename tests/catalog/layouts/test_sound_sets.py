from __future__ import annotations

from pathlib import Path

import pytest
import soundfile

from shotproof.catalog.catalog_check import check_catalog
from shotproof.catalog.layout import read_layout
from shotproof.core.errors import InputError
from tests.drawn_clips import tone


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def test_esc50(tmp_path: Path) -> None:
    touch(tmp_path, "audio/1-7-A-0.wav", "audio/2-8-B-1.wav")
    (tmp_path / "meta").mkdir()
    listing = tmp_path / "meta" / "esc50.csv"
    header = "filename,fold,target,category,esc10,src_file,take\n"
    listing.write_text(f"{header}2-8-B-1.wav,2,1,rooster,False,0008,B\n1-7-A-0.wav,1,0,dog,True,7,A\n")
    catalog = read_layout(tmp_path, "esc50")
    assert catalog.table.select(["item", "label", "split", "source", "fold"]).to_pylist() == [
        {"item": "audio/1-7-A-0.wav", "label": "dog", "split": "all", "source": "7", "fold": "1"},
        {"item": "audio/2-8-B-1.wav", "label": "rooster", "split": "all", "source": "0008", "fold": "2"},
    ]
    assert (catalog.record.license or "").startswith("CC BY-NC")
    assert catalog.record.name == "ESC-50"
    listing.write_text(f"{header}3-9-C-1.wav,2,1,rooster,False,9,C\n")
    with pytest.raises(InputError, match=r"esc50\.csv, line 2: .*3-9-C-1\.wav does not exist"):
        read_layout(tmp_path, "esc50")
    listing.write_text(f"{header}1-7-A-0.wav,2,1,,False,9,C\n")
    with pytest.raises(InputError, match=r"esc50\.csv, line 2: empty category"):
        read_layout(tmp_path, "esc50")
    listing.write_text("file,category\n")
    with pytest.raises(InputError, match=r"esc50\.csv has no column 'filename'"):
        read_layout(tmp_path, "esc50")


def test_urbansound8k(tmp_path: Path) -> None:
    touch(tmp_path, "audio/fold5/100032-3-0-0.wav", "audio/fold10/5-1-0-0.wav")
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "UrbanSound8K.csv").write_text(
        "slice_file_name,fsID,start,end,salience,fold,classID,class\n"
        "100032-3-0-0.wav,100032,0.0,0.317551,1,5,3,dog_bark\n"
        "5-1-0-0.wav,5,0.0,4.0,2,10,1,car_horn\n"
    )
    assert read_layout(tmp_path, "urbansound8k").table.drop_columns(["path"]).to_pylist() == [
        {
            "item": "audio/fold10/5-1-0-0.wav",
            "split": "all",
            "label": "car_horn",
            "source": "5",
            "fold": "10",
            "salience": "2",
        },
        {
            "item": "audio/fold5/100032-3-0-0.wav",
            "split": "all",
            "label": "dog_bark",
            "source": "100032",
            "fold": "5",
            "salience": "1",
        },
    ]


@pytest.mark.parametrize("folder", ["audio_16k", "data_44k", "."])
def test_vocalsound(tmp_path: Path, folder: str) -> None:
    touch(tmp_path, f"{folder}/m0107_0_throatclearing.wav", f"{folder}/f0003_0_cough.wav", f"{folder}/.hidden.wav")
    catalog = read_layout(tmp_path, "vocalsound")
    assert catalog.table["label"].to_pylist() == ["cough", "throatclearing"]
    assert catalog.table["source"].to_pylist() == ["f0003", "m0107"]
    assert all(path.is_file() for path in catalog.paths)
    touch(tmp_path, f"{folder}/cough.wav")
    with pytest.raises(InputError, match=r"'cough\.wav': expected a name such as f0003_0_cough"):
        read_layout(tmp_path, "vocalsound")


def test_folders_and_tables_of_sounds(tmp_path: Path) -> None:
    touch(tmp_path, "dog/1.WAV", "dog/2.mp3", "cat/1.ogg", "cat/notes.txt")
    assert read_layout(tmp_path, "folder").table["label"].to_pylist() == ["cat", "dog", "dog"]
    (tmp_path / "table.csv").write_text("audio,class,context\ndog/1.WAV,dog,rain\n")
    table = read_layout(tmp_path / "table.csv", "table").table
    assert table.select(["path", "label", "context"]).to_pylist() == [
        {"path": "dog/1.WAV", "label": "dog", "context": "rain"}
    ]


def test_the_check_reads_sounds_to_their_end(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / "dog").mkdir(exist_ok=True)
        soundfile.write(tmp_path / "dog" / f"{number}.flac", tone(number, 8.0), 16_000)
    broken = tmp_path / "dog" / "2.flac"
    broken.write_bytes(broken.read_bytes()[:-3_000])  # long after the first five seconds
    problems = check_catalog(read_layout(tmp_path, "folder"), way=1, shot=1, query=1)
    assert [(problem.kind, problem.where) for problem in problems] == [("unreadable-file", "dog/2.flac")]


def test_fsd50k_takes_clips_of_one_most_specific_label(tmp_path: Path) -> None:
    truth = tmp_path / "FSD50K.ground_truth"
    truth.mkdir()
    (truth / "dev.csv").write_text(
        "fname,labels,mids,split\n"
        '1,"Electric_guitar,Guitar,Music","a,b,c",train\n'
        '2,"Guitar,Music","b,c",val\n'
        '3,"Electric_guitar,Guitar,Bark,Dog,Music","a,b,d,e,c",train\n'
        "4,Music,c,train\n"
    )
    (truth / "eval.csv").write_text('fname,labels,mids\n5,"Bark,Dog","d,e"\n6,Dog,e\n')
    touch(
        tmp_path, *(f"FSD50K.dev_audio/{k}.wav" for k in range(1, 5)), *(f"FSD50K.eval_audio/{k}.wav" for k in (5, 6))
    )
    catalog = read_layout(tmp_path, "fsd50k")
    found = dict(zip(catalog.items, catalog.table["label"].to_pylist(), strict=True))
    assert {Path(item).stem: label for item, label in found.items()} == {
        **{"1": "Electric_guitar", "2": "Guitar", "4": "Music"},  # 3 has two: Electric_guitar and Bark
        **{"5": "Bark", "6": "Dog"},
    }
    assert catalog.record.notes["clips_of_several_labels"] == 1
    assert catalog.table["subset"].to_pylist() == ["dev", "dev", "dev", "eval", "eval"]
