"""Tasks of classes that are near each other."""
