"""Clients of chat servers and the Hugging Face Hub."""
