"""The exceptions of the package, and exceptions in one line."""

from mnmt_data.errors import Interrupted as Interrupted
from mnmt_data.errors import UserError


class RunError(UserError):
    """A run, checkpoint or study that cannot be used; the message names it and the remedy in one line."""


class RunInUseError(RunError):
    """A run that another process trains."""


class MachineError(RunError):
    """A run that this machine cannot continue, since it lacks what the run was begun with."""


class SharedRunError(RunError):
    """A run that a process of another machine trains too, since locks do not hold between the machines."""


def one_line(error: BaseException) -> str:
    """Return the message of an exception in one line."""
    return " ".join(str(error).split()) or type(error).__name__
