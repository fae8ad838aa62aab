from __future__ import annotations

import pytest

from shotproof.core.errors import UnknownName
from shotproof.masks.cutter import cutters


def test_an_unknown_cutter_is_told_the_nearest() -> None:
    with pytest.raises(UnknownName, match="unknown cutter 'grabcutt': did you mean 'grabcut'"):
        cutters.make("grabcutt")


def test_only_grabcut_needs_boxes() -> None:
    assert [name for name in cutters if cutters.get(name).needs_boxes] == ["grabcut"]
