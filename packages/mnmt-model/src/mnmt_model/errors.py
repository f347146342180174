"""The package's one named exception."""


class RunError(Exception):
    """A run, checkpoint or study that cannot be used; one line that names it and the remedy."""
