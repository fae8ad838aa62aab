"""Methods that see an item as a map."""

from __future__ import annotations

from shotproof.methods.method import Method


class MapMethod(Method):
    """A method on local maps: support [B, n, d, h, w], query [B, m, d, h, w]. Locations have no order.

    Everything is computed in float64, and queries in chunks, so that memory stays bounded whatever the maps' size.
    """

    needs = "maps"
