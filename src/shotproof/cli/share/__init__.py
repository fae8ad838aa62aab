"""`shotproof share`: commands that pack, verify and rank shared files."""
