from __future__ import annotations

import pyarrow as pa
import pytest

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.item_files import item_files
from shotproof.core.errors import InputError


@pytest.mark.parametrize("gain", [1e308, float("nan")])
def test_a_gain_that_no_sound_can_have_is_refused(gain: float) -> None:
    columns = {"item": ["a"], "path": [""], "label": ["bell"], "split": ["test"], "foreground": ["a.wav"]}
    catalog = Catalog(pa.table({**columns, "background": ["b.wav"], "gain_db": [gain]}))
    with pytest.raises(InputError, match="catalog, column 'gain_db': expected at most 200 dB, found"):
        item_files(catalog)
