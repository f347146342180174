"""The package's one named exception, and how any is told."""


class RunError(Exception):
    """A run, checkpoint or study that cannot be used; one line that names it and the remedy."""


def one_line(error: BaseException) -> str:
    """What an exception says, in one line."""
    return " ".join(str(error).split()) or type(error).__name__
