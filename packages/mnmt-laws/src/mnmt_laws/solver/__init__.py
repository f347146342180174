"""The solver: separable laws fitted to many copies of a sample at once."""
