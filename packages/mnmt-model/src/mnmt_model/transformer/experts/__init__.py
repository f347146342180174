"""Mixtures of experts: the layer, where its tokens go, and which process holds which experts."""
