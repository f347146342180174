"""Names of texts in corpus folders, in the conventions of Moses, sacreBLEU and mtdata."""

from __future__ import annotations

from collections.abc import Iterator
from glob import escape
from pathlib import Path

from mnmt_data.errors import DataError, folder_holds
from mnmt_data.readers.byte_sources import CODECS, File, plain_name
from mnmt_data.readers.encoding import MARKUP
from mnmt_data.readers.language_codes import best_tags, canonical_task, languages
from mnmt_data.readers.text_pairs import TextPairs

SPLITS = ("train", "dev", "test")
"""Splits by role; other names are names of sacreBLEU's or mtdata's test sets."""


def named_texts(folder: Path, testset: str, pair_name: str, task: str) -> tuple[TextPairs, ...]:
    """Find the texts `TESTSET.SRC-TGT.SRC` and `.TGT`; `pair_name` is the pair in their names.

    Raises:
        DataError: If one side is missing, or one text is there twice.
    """
    stem = folder / f"{testset}.{pair_name}"
    sides = [_text(stem, code) or _text(stem, code.replace("_", "-")) for code in languages(task)]
    return _pair(task, sides, [f"{stem}.{code}" for code in languages(task)])


def sacrebleu_texts(folder: Path, testset: str, pair_name: str, task: str) -> tuple[TextPairs, ...]:
    """Find the source and first reference of a test set that sacreBLEU fetched, with its original languages.

    sacreBLEU keeps a test set in `~/.sacrebleu/SET`, as `SET.SRC-TGT.src`, `.ref` (`.ref-A` or `.ref-0` and
    on, where there are several) and `.origlang`.
    `folder` may be that one, whatever `testset` is called, or `~/.sacrebleu` with `SET` for a test set.

    Raises:
        DataError: If one side is missing.
    """
    for directory in (folder / testset, folder):
        for prefix in _prefixes(directory, testset):
            if files := _processed(directory / f"{prefix}.{pair_name}", pair_name, task):
                return files
    return ()


def _prefixes(directory: Path, testset: str) -> list[str]:
    """Return the prefixes of files in sacreBLEU's folder `wmt21/systems`: `wmt21_systems`, `systems`, ..."""
    requested = testset.replace("/", "_")
    parts = directory.absolute().parts[-3:]
    folder_names = ["_".join(parts[start:]) for start in range(len(parts))]
    return [requested] if testset in SPLITS else [requested, *folder_names]


def _processed(stem: Path, pair_name: str, task: str) -> tuple[TextPairs, ...]:
    source = stem.with_name(f"{stem.name}.src")
    reference = min(stem.parent.glob(f"{escape(stem.name)}.ref*"), default=None)
    origins = stem.with_name(f"{stem.name}.origlang")
    sides = [source if source.is_file() else None, reference]
    pairs = _pair(task, _in_order(sides, pair_name, task), [f"{stem}.src", f"{stem}.ref"])
    if not origins.is_file():
        return pairs
    return tuple(TextPairs(task=task, src=p.src, tgt=p.tgt, origins=File(origins)) for p in pairs)


def _in_order(sides: list[Path | None], pair_name: str, task: str) -> list[Path | None]:
    """Return source and target of the task, given those of the pair in the names."""
    return sides if canonical_task(pair_name) == task else sides[::-1]


def mtdata_texts(folder: Path, testset: str, task: str) -> tuple[TextPairs, ...]:
    """Find the texts that `mtdata get --out FOLDER` left, their languages written `deu` or `deu_DE`.

    `train` is `train.LANG`, or if mtdata did not merge, every text of `train-parts`. `test` is `test.LANG`,
    or else `test1.LANG`, `test2.LANG` and so on. Other names are searched for in `tests`:
    `newstest_deen` or `newstest_deen-2019` for `tests/Statmt-newstest_deen-2019-deu-eng.LANG`.

    Raises:
        DataError: If one text is there twice.
    """
    texts = dict(_texts(folder, task))
    if testset in texts:
        return (texts[testset],)
    if testset == "train":
        return tuple(pairs for _, pairs in _texts(folder / "train-parts", task))
    if testset in SPLITS:
        numbers = (stem.removeprefix(testset) for stem in texts if stem.startswith(testset))
        ordered = sorted(filter(str.isdecimal, numbers), key=int)
        return tuple(texts[f"{testset}{number}"] for number in ordered)
    tests = _texts(folder / "tests", task)
    return tuple(pairs for stem, pairs in tests if f"-{testset}-" in f"-{stem}-")


def _texts(folder: Path, task: str) -> Iterator[tuple[str, TextPairs]]:
    """Yield names and texts of the files `NAME.LANG` that exist in both languages of a task, by name."""
    stems: dict[str, dict[str, list[Path]]] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        stem, _, tag = plain_name(path).rpartition(".")
        if stem and not stem.startswith(".") and path.is_file():
            stems.setdefault(stem, {}).setdefault(tag, []).append(path)
    for stem, tags in stems.items():
        if sides := best_tags(tuple(tags), task, str(folder / stem)):
            src, tgt = (File(only_file(tags[side])) for side in sides)
            yield stem, TextPairs(task=task, src=src, tgt=tgt)


def _text(stem: Path, code: str) -> Path | None:
    endings = (form + codec for form in ("", *MARKUP) for codec in ("", *CODECS))
    paths = [stem.with_name(f"{stem.name}.{code}{ending}") for ending in endings]
    files = [path for path in paths if path.is_file()]
    return only_file(files) if files else None


def only_file(paths: list[Path]) -> Path:
    """Return the one path.

    Raises:
        DataError: If there are several.
    """
    if len(paths) > 1:
        raise DataError(f"{paths[0]}: {paths[1].name} is there as well; keep one of them.")
    return paths[0]


def _pair(task: str, sides: list[Path | None], names: list[str]) -> tuple[TextPairs, ...]:
    src, tgt = sides
    if src is None and tgt is None:
        return ()
    if src is None or tgt is None:
        missing = next(Path(name) for name, side in zip(names, sides, strict=True) if side is None)
        raise DataError(f"{missing}: no such file; a task needs both sides; {folder_holds(missing)}.")
    return (TextPairs(task=task, src=File(src), tgt=File(tgt)),)
