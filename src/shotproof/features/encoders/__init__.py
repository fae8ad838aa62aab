"""One file per encoder, and what they share."""
