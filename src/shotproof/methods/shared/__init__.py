"""What heads share: inner products, optimizers, balanced assignments."""
