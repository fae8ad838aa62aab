"""What pretrained encoders were trained on, by the names of its classes."""
