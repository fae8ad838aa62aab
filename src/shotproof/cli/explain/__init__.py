"""`shotproof explain`: commands that explain results, features and the number of tasks."""
