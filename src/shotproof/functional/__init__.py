"""Stateless formulas on tensors of B tasks: what heads on frozen features and objectives of training share."""
