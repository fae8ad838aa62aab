"""How near images are to the names of their concepts and of their contexts, in a space that texts share."""
