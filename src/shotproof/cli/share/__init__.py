"""`shotproof share`: commands on what goes from one hand to another."""
