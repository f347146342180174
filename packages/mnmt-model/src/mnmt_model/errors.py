"""The exception of the package, and exceptions in one line."""


class RunError(Exception):
    """A run, checkpoint or study that cannot be used; the message names it and the remedy in one line."""


def one_line(error: BaseException) -> str:
    """Return the message of an exception in one line."""
    return " ".join(str(error).split()) or type(error).__name__
