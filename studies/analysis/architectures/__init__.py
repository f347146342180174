"""Encoder-decoders against language models for translation: the analysis of docs/studies/architectures.md."""
