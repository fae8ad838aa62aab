"""Task sets of any size as arrays, to be looked at in parts."""
