"""The exception that mnmt-eval raises, and the check of an extra."""

from importlib.util import find_spec

from mnmt_data.errors import UserError


class EvalError(UserError, ValueError):
    """An argument, file or model that cannot be evaluated; the message is one line with the remedy."""


def require_runs(what: str) -> None:
    """Check that torch and mnmt-model are installed, which trained runs need and nothing else.

    Raises:
        EvalError: If one is missing; the message names the feature that needs it.
    """
    for module in ("torch", "mnmt_model"):
        if find_spec(module) is None:
            raise EvalError(
                f"{what} needs {module.replace('_', '-')}, which the extra `runs` installs: "
                "`pip install ./packages/mnmt-model './packages/mnmt-eval[runs]'`."
            )
