"""One file per backbone, and what they share."""
