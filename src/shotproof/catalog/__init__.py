"""What exists: the table of items, and one file for each layout on disk."""
