"""The papers' tables again: experiments, the results of our runs, and the tables that follow from both."""
