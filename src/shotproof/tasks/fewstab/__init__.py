"""FewSTAB: tasks with biased attributes."""
