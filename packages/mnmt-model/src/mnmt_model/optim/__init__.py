"""Optimisers: Adafactor, AdamW, their learning rate and the clipping of gradients."""
