"""Optimisers: Adafactor, AdamW, their learning rate and the clipping of gradients."""

from mnmt_model.optim.adafactor import Adafactor
from mnmt_model.optim.optimizer import clip_gradients, learning_rate, make_optimizer

__all__ = ["Adafactor", "clip_gradients", "learning_rate", "make_optimizer"]
