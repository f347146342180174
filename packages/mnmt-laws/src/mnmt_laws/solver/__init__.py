"""The solver: separable laws fitted to many copies of a table at once."""
