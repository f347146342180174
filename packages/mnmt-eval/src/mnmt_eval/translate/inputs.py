"""Which files of a folder are translated, and what their translations are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mnmt_eval.errors import EvalError
from mnmt_eval.language.codes import languages_of


def sources_of(folder: Path, pair: str) -> dict[str, Path]:
    """The sources of a pair in a folder, by the names of their translations.

    Of en-de, `NAME.en` and `NAME.en-de.en` are sources, and the translation of either is `NAME.en-de.de`;
    `NAME.de-en.en` and `NAME.en-fr.en` are of other pairs.

    Raises:
        EvalError: If `pair` is none, there is no source, or two have translations of one name.
    """
    src, tgt = languages_of(pair)
    found: dict[str, Path] = {}
    for path in sorted(folder.glob(f"*.{src}")):
        name, dot, of_pair = path.stem.rpartition(".")
        if dot and src in of_pair.split("-") and of_pair.count("-") == 1:
            if of_pair != pair:
                continue
        else:
            name = path.stem
        translation = f"{name}.{pair}.{tgt}"
        if translation in found:
            raise EvalError(
                f"{path}: its translation would be {translation}, as that of {found[translation].name} is; "
                "remove one of them."
            )
        found[translation] = path
    if not found:
        raise EvalError(f"{folder}: holds neither NAME.{src} nor NAME.{pair}.{src} to translate.")
    return found


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
