"""What encoders make of items, their cache, and one file for each kind of encoder."""
