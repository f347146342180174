"""Learned metrics' models; needs torch, and the extra of each."""
