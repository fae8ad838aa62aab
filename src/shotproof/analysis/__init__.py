"""What results and features tell beyond comparisons: why tasks are hard, for whom, and what contexts change."""
