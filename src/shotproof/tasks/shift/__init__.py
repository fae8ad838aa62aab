"""Tasks whose support and query meet different conditions."""
