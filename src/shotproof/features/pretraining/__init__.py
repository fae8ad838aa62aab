"""Classes that pretrained encoders were trained on."""
