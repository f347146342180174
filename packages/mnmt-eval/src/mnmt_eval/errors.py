"""The exception that mnmt-eval raises, and the checks of extras."""

from importlib.util import find_spec

from mnmt_data.errors import UserError


class EvalError(UserError, ValueError):
    """An argument, file or model that cannot be evaluated; the message is one line with the remedy."""


def require_runs(what: str) -> None:
    """Check that torch and mnmt-model are installed, which trained runs need and nothing else.

    Raises:
        EvalError: If one is missing; the message names the feature that needs it.
    """
    _require(what, ("torch", "mnmt_model"), "runs", "./packages/mnmt-model './packages/mnmt-eval[runs]'")


def require_hugging_face(what: str) -> None:
    """Check that what reads models of Hugging Face is installed.

    Raises:
        EvalError: If a package is missing; the message names the feature that needs it.
    """
    modules = ("torch", "transformers", "sentencepiece")
    _require(what, modules, "hugging-face", "'./packages/mnmt-eval[hugging-face]'")


def _require(what: str, modules: tuple[str, ...], extra: str, packages: str) -> None:
    for module in modules:
        if find_spec(module) is None:
            raise EvalError(
                f"{what} needs {module.replace('_', '-')}, which the extra `{extra}` installs: "
                f"`pip install {packages}`."
            )
