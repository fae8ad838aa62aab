"""`shotproof explain`: commands by what is asked about tasks, features and pilots."""
