"""A benchmark as one file, from which anybody runs it on an encoder of their own."""
