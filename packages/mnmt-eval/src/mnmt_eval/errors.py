"""The exception that mnmt-eval raises."""


class EvalError(ValueError):
    """An argument, file or model that cannot be evaluated; the message is one line with the remedy."""
