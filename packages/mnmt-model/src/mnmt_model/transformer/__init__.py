"""The models: attention, feed-forward, norms, positions and masks, and the architectures made of them."""
