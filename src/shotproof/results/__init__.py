"""Results, and the counts, metrics, origins and answers that are read from them."""
