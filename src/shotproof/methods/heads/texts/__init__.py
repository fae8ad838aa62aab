"""Heads on models of two towers: they read the texts of the classes, too."""
