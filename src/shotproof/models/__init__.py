"""Networks that are trained for few shots: backbones, what training minimizes, and models as files."""
