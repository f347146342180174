"""Mixtures of experts: the layer, the routes of its tokens, and the processes that hold its experts."""
