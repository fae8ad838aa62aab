"""Context shift: matched tasks in the same, in other, in swapped and in no contexts."""
