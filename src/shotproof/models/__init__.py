"""Few-shot networks: backbones, training objectives and model files."""
