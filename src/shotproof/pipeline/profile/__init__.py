"""Profile of one classifier: an experiment over all axes that the data allows, and its robustness card."""
