"""Stateless functions on tensors of B tasks, shared by heads on frozen features and training objectives."""
