"""Entry point of `python -m shotproof`, the same as the command `shotproof`."""

from shotproof.cli.app import main

main()
