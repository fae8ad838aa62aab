"""Which words hold of which item, and one file for each detector."""
