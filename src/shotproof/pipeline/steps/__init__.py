"""What a run makes, file by file."""
