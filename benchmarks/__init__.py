"""Speed, always as a ratio to a plain baseline in the same run: an absolute time holds for one machine only."""
