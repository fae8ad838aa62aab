"""Malformed files of every format that is read, through every command that reads it."""
