"""`python -m shotproof` is `shotproof`."""

from shotproof.cli.app import main

main()
