"""Clients of servers: chat servers and the Hugging Face hub."""
