"""The command line: one file per command, each a thin layer over the Python functions of the same name."""

from shotproof.cli.app import main

__all__ = ["main"]
