"""Measurements of what the packages claim, a folder a package.

Run them from the repository's root: `python -m benchmarks.data.mixing`.
"""
