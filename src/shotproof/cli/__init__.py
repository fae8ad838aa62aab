"""The command line: one file a verb, each a thin layer over the Python functions of the same name."""

from shotproof.cli.app import main

__all__ = ["main"]
