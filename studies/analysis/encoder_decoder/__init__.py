"""Encoders and decoders of different depths, and choices of training: docs/studies/encoder-decoder.md."""
