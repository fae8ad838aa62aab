"""Tasks times methods give counts; metrics are computed from counts alone."""
