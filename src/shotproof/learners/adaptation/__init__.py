"""Methods that adapt a trained network to each task, and the code they share."""
