"""Whether results and cards can be true: against themselves, their task sets, and features or a model."""
