"""Every extra: what one of its uses says without it, and that with it, and with nothing else, the use works."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.package.environments import Environment, Metadata, link_packages, missing

pytestmark = pytest.mark.package

# One use of each, in an environment where `sp` is Shotproof.
USES = {
    "captions": "words.make_tagger('hanta')('a small bird')",
    "spacy": "words.make_tagger('spacy')",
    "vlm": "sp.detectors.make('vlm:some/model').require_extras()",
    "endpoint": 'sp.detectors.make(\'endpoint(model="llava", url="http://localhost")\').require_extras()',
    "lite": "sp.encoders.make('lite0').network",
    "hf": "sp.encoders.make('hf:some/model').require_extras()",
    "cut": "sp.masks.cutters.make('grabcut').require_extras()",
    "hub": "hub._import_hub()",
    "timm": "sp.backbones.make('timm:resnet18').preprocessing('image')",
    "onnx": "sp.encoders.make('onnx:some.onnx').require_extras()",
    "sklearn": "method.make_method('sklearn:sklearn.svm.SVC(C=10)')",
    "pandas": "tables.require_pandas()",
    "plot": "plot._draw([plot.Panel('', '', lambda axes: None, 1)])",
    "sound": "clip.soundfile_module(), lufs._meter()",
    "ray": "RayEngine().require_extras()",
    "datasets": "sp.layouts.make('hf').require_extras()",
    "birdnet": "sp.encoders.make('birdnet').require_extras(), sp.encoders.make('birdnet').network",
}
GROUPS = {"all", "dev", "browser", "stores", "docs"}  # of others, and tools of ours: no error asks for them
PREAMBLE = """
import json, sys
import shotproof as sp
from shotproof.attributes.detectors import words
from shotproof.core import tables
from shotproof.core.errors import MissingExtra
from shotproof.core.runtime.ray import RayEngine
from shotproof.media import clip
from shotproof.learners import method
from shotproof.pipeline.bundle import hub
from shotproof.media import lufs
from shotproof.comparison import plot
"""
ASK_ALL = """
told = {}
for extra, use in json.loads(sys.argv[1]).items():
    try:
        eval(use)
    except MissingExtra as error:
        told[extra] = str(error)
print(json.dumps(told))
"""


def test_without_extras_every_error_names_the_one_to_install(
    core: Environment, metadata: Metadata, tmp_path: Path
) -> None:
    assert set(USES) | GROUPS == set(metadata.extras)
    done = core.run("-c", PREAMBLE + ASK_ALL, json.dumps(USES), folder=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert {extra: text.rpartition(": ")[2] for extra, text in told.items()} == {
        extra: f"pip install shotproof[{extra}]" for extra in USES
    }


def test_what_is_installed_here_is_what_the_extras_ask_for(metadata: Metadata) -> None:
    wrong = []
    for extra in ("", *metadata.extras):
        for each in metadata.required(extra):
            if not missing([each]) and not each.specifier.contains(version(each.name), prereleases=True):
                wrong.append(f"{extra}: {each}, found {version(each.name)}")
    assert wrong == []


@pytest.mark.parametrize("extra", sorted(USES))
def test_an_extra_brings_all_that_its_use_needs(extra: str, python: Path, metadata: Metadata, tmp_path: Path) -> None:
    required = metadata.required(extra)
    folder = link_packages(tmp_path / "packages", [*metadata.required(), *required])
    done = Environment(python, folder).run("-c", f"{PREAMBLE}\n{USES[extra]}", folder=tmp_path)
    if missing(required):  # not here: what is told is all that there is to see
        assert f"pip install shotproof[{extra}]" in done.stderr
    else:
        assert done.returncode == 0, done.stderr[-3000:]
