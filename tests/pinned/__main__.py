"""Pin the calls that are new."""

from __future__ import annotations

from tests.pinned.pins import pin_new

pin_new()
