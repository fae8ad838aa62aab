"""How near images are to their concepts and contexts."""
