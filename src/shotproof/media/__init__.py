"""One image or one clip to an array, with limits."""
