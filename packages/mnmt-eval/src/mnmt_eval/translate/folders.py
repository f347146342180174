"""Which files of a folder are translated, and what their translations are called."""

from __future__ import annotations

from pathlib import Path

from mnmt_eval.errors import EvalError
from mnmt_eval.language_pairs import languages_of


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
