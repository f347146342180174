"""The package's one named exception."""


class EvalError(ValueError):
    """An argument, file or model that cannot be evaluated; one line that names it and the remedy."""
