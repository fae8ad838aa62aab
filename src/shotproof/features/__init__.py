"""Features of items, the encoders that compute them, and transforms."""
