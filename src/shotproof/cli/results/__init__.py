"""Commands on results: compare, explain, plan, report."""
