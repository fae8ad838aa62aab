"""Where features lie: what mixing does to their length and direction, and how far two sets of them are apart."""
