"""Calls whose answers must never change: which tasks every sampler draws, and what every method counts on them.

The tables of `draws` and `counts` say what is called, as data. Only `draw` and `count` know how Shotproof is called:
when its functions change, they change, and the tables and `pinned.json` stay. `python -m tests.pinned` pins calls that
are new in the tables and never touches a pin that is there.
"""
