"""Tasks drawn at random, with and without replacement, of equal and of unequal sizes."""
