"""What a context does to the length and direction of features."""
