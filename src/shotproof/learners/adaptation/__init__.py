"""Methods that adapt a trained network to each task, one file each, and what they share."""
