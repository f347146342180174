"""Mixtures of experts: the layer, the routing of tokens, and the processes that hold the experts."""
