"""Test sets of sacreBLEU that it has fetched before; nothing is downloaded."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Any

from mnmt_eval.errors import EvalError

PREFIX = "sacrebleu:"
"""The beginning of a test set's name where a file of references could stand."""


def sacrebleu_files(name: str, task: str | None) -> tuple[tuple[Path, ...], Path]:
    """Return the references of a test set that sacreBLEU scores with by default, and its source.

    Args:
        name: The test set's name, such as `wmt19` or `wmt21/dev`.
        task: The language pair.

    Raises:
        EvalError: If there is no such test set or pair, or sacreBLEU has not fetched it yet.
    """
    from sacrebleu import utils
    from sacrebleu.dataset import DATASETS

    what = f"--reference {PREFIX}{name}"
    if name not in DATASETS:
        close = get_close_matches(name, DATASETS) or ["wmt24", "wmt19"]
        raise EvalError(f"{what}: sacreBLEU has no such test set; it has {', '.join(close)} and others.")
    dataset = DATASETS[name]
    if task is None or task not in dataset.langpairs:
        pairs = ", ".join(dataset.langpairs)
        problem = "needs its language pair; name it with --task" if task is None else f"has no {task}"
        raise EvalError(f"{what}: {problem}; there are {pairs}.")
    folder = Path(utils.SACREBLEU_DIR, name)
    stem = f"{name.replace('/', '_')}.{task}."
    source = folder / f"{stem}src"
    references = _references(folder, stem, dataset, task)
    if not (source.is_file() and references and all(path.is_file() for path in references)):
        raise EvalError(
            f"{what}: {folder} does not hold its {task} yet; "
            f"`sacrebleu -t {name} -l {task} --echo src > {task}.src` fetches it."
        )
    return references, source


def _references(folder: Path, stem: str, dataset: Any, task: str) -> tuple[Path, ...]:
    """Return the references that sacreBLEU uses: the ones that the test set names, or all."""
    entry, default = dataset.langpairs[task], dataset.kwargs.get("refs", [])
    labels = entry.get("refs", default) if isinstance(entry, dict) else default
    if labels:
        return tuple(folder / f"{stem}ref{f'-{label}' if label else ''}" for label in labels)
    return tuple(sorted(folder.glob(f"{stem}ref*"), key=lambda path: (len(path.name), path.name)))
