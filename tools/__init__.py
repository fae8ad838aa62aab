"""What the developers run; not part of the package."""
