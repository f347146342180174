"""The exceptions of the package, and messages of exceptions in one line."""

from signal import Signals

from mnmt_data.errors import UserError


class RunError(UserError):
    """A run, checkpoint or study cannot be used; the message names it and the remedy in one line."""


class RunInUseError(RunError):
    """Another process trains the run."""


class Interrupted(KeyboardInterrupt):
    """A signal has stopped training: before the first step, or after a step, with a checkpoint.

    Args:
        signum: The signal.
        step: The last step of training; None for several runs.
    """

    def __init__(self, signum: int, step: int | None = None) -> None:
        where = "" if step is None else f" after step {step}"
        name = Signals(signum).name
        super().__init__(f"interrupted by {name}{where}; the same command continues from there")
        self.exit_status = 128 + signum
        """Exit status of the process, as in shells."""


def one_line(error: BaseException) -> str:
    """Return the message of an exception in one line."""
    return " ".join(str(error).split()) or type(error).__name__
