"""One file per detector of attributes, and what they share."""
