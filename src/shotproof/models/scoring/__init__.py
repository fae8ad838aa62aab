"""Scores as functions on tensors of B tasks, with gradients: what heads on frozen features and objectives share."""
