"""In-context methods: a model that sees the support set in its prompt."""
