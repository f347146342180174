"""The exceptions of the package, and exceptions in one line."""

from signal import Signals

from mnmt_data.errors import UserError


class RunError(UserError):
    """A run, checkpoint or study that cannot be used; the message names it and the remedy in one line."""


class RunInUseError(RunError):
    """A run that another process trains."""


class Interrupted(KeyboardInterrupt):
    """Training that a signal has stopped: before its first step, or after one, with a checkpoint.

    Args:
        signum: The signal.
        step: The step that training had reached; None for several runs.
    """

    def __init__(self, signum: int, step: int | None = None) -> None:
        where = "" if step is None else f" after step {step}"
        super().__init__(f"interrupted by {Signals(signum).name}{where}; the same command goes on from there")
        self.exit_status = 128 + signum
        """Exit status of the process, as shells count signals."""


def one_line(error: BaseException) -> str:
    """Return the message of an exception in one line."""
    return " ".join(str(error).split()) or type(error).__name__
