"""What encoders make of items, their cache, and one file for each kind of encoder."""

from shotproof.features.encoder import Encoder, encode, encoders
from shotproof.features.features import Features

__all__ = ["Encoder", "Features", "encode", "encoders"]
