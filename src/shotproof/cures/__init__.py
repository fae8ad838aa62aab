"""Remedies: what to do about a loss. Fitted, chosen and confirmed on three separate parts of the classes."""
