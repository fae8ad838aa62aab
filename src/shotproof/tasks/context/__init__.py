"""Context shift: matched tasks with queries in the same, in other, in swapped and in no contexts."""
