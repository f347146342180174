"""What `mnmt-eval translate` is to read and write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mnmt_eval.errors import EvalError
from mnmt_eval.translate.folders import sources_of


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """One input and the output of its translations."""

    pair: str | None
    """Language pair of all lines; None where each line names its own."""
    source: Path | None
    """A file, or stdin."""
    output: Path | None
    """A file, or stdout."""

    @property
    def name(self) -> str:
        """What messages call the input."""
        return "stdin" if self.source is None else str(self.source)


def find_transfers(
    pairs: Sequence[str], *, tagged: bool, source: Path | None, output: Path | None
) -> list[Transfer]:
    """What is translated into what.

    Args:
        pairs: Language pairs.
        tagged: Whether every line names its pair.
        source: A file or folder; stdin if None.
        output: A file, or a folder if `source` is one; stdout if None.

    Raises:
        EvalError: If these do not fit together, a pair is none, or a folder holds nothing to translate.
    """
    if tagged == bool(pairs):
        raise EvalError(
            "translate takes either `--pair SRC-TGT`, or `--tagged` where every line names its pair."
        )
    if source is not None and source.is_dir():
        if tagged or output is None:
            raise EvalError(
                f"{source}: a folder takes `--pair` and, for the translations, `--output FOLDER`."
            )
        return [
            Transfer(pair=pair, source=path, output=output / name)
            for pair in dict.fromkeys(pairs)
            for name, path in sources_of(source, pair).items()
        ]
    if len(pairs) > 1:
        raise EvalError(
            f"one text cannot be of several pairs ({', '.join(pairs)}): give folders as `--input` and "
            "`--output`, or lines that name their pair, with `--tagged`."
        )
    return [Transfer(pair=None if tagged else pairs[0], source=source, output=output)]
