"""One file per objective, and what they share."""
