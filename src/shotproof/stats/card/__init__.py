"""The robustness card of one classifier, and the gate that holds it against limits."""
