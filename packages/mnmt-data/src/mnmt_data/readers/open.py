"""Open readers of a corpus folder, or of a source by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from mnmt_data.errors import DataError
from mnmt_data.readers.byte_sources import CODECS, ByteSource, File, check_is_file, plain_name
from mnmt_data.readers.catalogue import po_pairs
from mnmt_data.readers.encoding import MARKUP, check_head
from mnmt_data.readers.language_codes import opposite, task_spellings
from mnmt_data.readers.layouts import mtdata_texts, named_texts, only_file, sacrebleu_texts
from mnmt_data.readers.opus_zip import open_zip
from mnmt_data.readers.parquet import ParquetPairs
from mnmt_data.readers.patterns import LANG, files_named, texts_named
from mnmt_data.readers.reader import Reader
from mnmt_data.readers.records import CsvPairs, JsonPairs, TsvPairs
from mnmt_data.readers.tmx import tmx_pairs
from mnmt_data.readers.xliff import XLIFF, xliff_pairs
from mnmt_data.store.remote import is_url, local_folder


def _units(pairs: Callable[[ByteSource, str], Reader]) -> Callable[[Path, str], Reader]:
    return lambda path, task: pairs(File(path), task)


def _refuse_markup(path: Path, task: str) -> Reader:
    check_head(next(File(path).chunks(), b""), str(path))
    raise _unknown_format(path)


_TEXT_FORMATS: Mapping[str, Callable[[Path, str], Reader]] = {
    ".tsv": TsvPairs,
    ".csv": CsvPairs,
    ".jsonl": JsonPairs,
    ".tmx": _units(tmx_pairs),
    **dict.fromkeys(XLIFF, _units(xliff_pairs)),
    **dict.fromkeys(MARKUP, _refuse_markup),  # found by name, not to leave a test set out in silence
}
"""Formats that may be compressed, by the ending of the file's name without that of the codec."""

FORMATS: Mapping[str, Callable[[Path, str], Reader]] = MappingProxyType(
    {
        **{form + codec: opened for form, opened in _TEXT_FORMATS.items() for codec in ("", *CODECS)},
        ".po": po_pairs,
        ".zip": open_zip,
        ".parquet": ParquetPairs,
    }
)
"""Formats that hold both sides in one file, by the ending of the file's name."""


def find_readers(folder: Path, testset: str, task: str) -> tuple[Reader, ...]:
    """Open all files in a corpus folder that hold a test set and task; fetch those of a folder at a URL.

    These are the files named for the task: texts `TESTSET.SRC-TGT.SRC` and `.TGT`, each plain or with an
    ending of `CODECS`; sacreBLEU's files; `TESTSET.SRC-TGT` in one of `FORMATS`. If there are none, files so
    named for the opposite direction are used; otherwise mtdata's files, whose names have no direction.

    Returns:
        The readers, in a fixed order; empty if the folder does not hold the test set and task.

    Raises:
        DataError: If one side is missing, or one text or table is there twice.
    """
    names = (*task_spellings(task), *task_spellings(opposite(task)))
    if is_url(folder):
        prefixes = tuple(f"{testset}.{pair}." for pair in names)
        folder = local_folder(folder, lambda name: name.startswith(prefixes))
    for pair_name in names:
        if readers := _readers_named(folder, testset, pair_name, task):
            return readers
    return mtdata_texts(folder, testset, task)


def _readers_named(folder: Path, testset: str, pair_name: str, task: str) -> tuple[Reader, ...]:
    texts = (
        *named_texts(folder, testset, pair_name, task),
        *sacrebleu_texts(folder, testset, pair_name, task),
    )
    files: dict[str, list[Path]] = {}
    for path in (folder / f"{testset}.{pair_name}{ending}" for ending in FORMATS):
        if path.is_file():
            files.setdefault(plain_name(path), []).append(path)
    return (*texts, *(_open_file(only_file(paths), task) for paths in files.values()))


def open_readers(source: str, task: str) -> list[Reader]:
    """Open the readers of a source that a study names.

    Args:
        source: The path of a file with an ending of `FORMATS`; or of two texts, plain or compressed, with
            `{lang}` for the language codes: `raw/europarl.{lang}.gz`. Paths may have wildcards,
            `raw/part-*.tsv.gz`, and be URLs: `s3://bucket/europarl.{lang}.gz`. `~` is the home folder.
        task: The language pair, `SRC-TGT`.

    Returns:
        A reader, or one for each file that matches, sorted by name.

    Raises:
        DataError: If a file is missing, nothing matches, or the ending of a name is unknown.
    """
    if LANG in source:
        return [*texts_named(source, task)]
    return [_open_file(path, task) for path in files_named(source)]


def open_reader(source: str, task: str) -> Reader:
    """Open the reader of a source that is one; see `open_readers`.

    Raises:
        DataError: As `open_readers`, or if several files match.
    """
    reader, *others = open_readers(source, task)
    if others:
        raise DataError(f"{source}: {1 + len(others)} files match; name one of them.")
    return reader


def _open_file(path: Path, task: str) -> Reader:
    """Open a file by the ending of its name."""
    check_is_file(path)
    for ending, opened in FORMATS.items():
        if path.name.lower().endswith(ending):
            return opened(path, task)
    raise _unknown_format(path)


def _unknown_format(path: Path) -> DataError:
    texts = ", ".join(ending for ending in _TEXT_FORMATS if ending not in MARKUP)
    endings = f"{texts} ({', '.join(CODECS)} may follow), .po, .zip, .parquet"
    what = f"the name must end in one of {endings}, or have {LANG} for two texts"
    return DataError(f"{path}: unknown format; {what}.")
