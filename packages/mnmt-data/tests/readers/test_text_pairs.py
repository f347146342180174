import gzip
import pickle

import pytest

from mnmt_data.errors import DataError
from mnmt_data.readers import open_reader
from mnmt_data.readers.reader import BLOCK_PAIRS


def write(folder, **texts):
    for name, text in texts.items():
        (folder / f"x.{name}").write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(folder / "x.{lang}")


def test_blocks_are_full_but_for_the_last_and_stay_aligned(tmp_path):
    total = 2 * BLOCK_PAIRS + 7
    numbers = "".join(f"{number}\n" for number in range(total))
    blocks = list(
        open_reader(write(tmp_path, en=numbers, de=numbers.replace("\n", "\r\n")), "en-de").blocks()
    )
    assert [len(block) for block in blocks] == [BLOCK_PAIRS, BLOCK_PAIRS, 7]
    assert [block.first for block in blocks] == [0, BLOCK_PAIRS, 2 * BLOCK_PAIRS]
    assert all(block.src == block.tgt and block.src[0] == str(block.first) for block in blocks)
    assert all(block.origins is None for block in blocks)


def test_empty_sides_are_kept(tmp_path):
    (block,) = open_reader(write(tmp_path, en="a\n\nc\n", de="\nB\n\n"), "en-de").blocks()
    assert (block.src, block.tgt) == (["a", "", "c"], ["", "B", ""])


def test_empty_files_hold_no_pairs(tmp_path):
    assert list(open_reader(write(tmp_path, en="", de=""), "en-de").blocks()) == []


@pytest.mark.parametrize(
    ("en", "de", "counts"),
    [
        ("a\nb\nc\n", "A\n", (3, 1)),
        ("", "A\nB", (0, 2)),
        ("a\n" * 120_000, "A\n" * 50_000, (120_000, 50_000)),
    ],
)
def test_unequal_counts_name_both_files_and_counts(tmp_path, en, de, counts):
    source = write(tmp_path, en=en, de=de)
    with pytest.raises(DataError) as error:
        list(open_reader(source, "en-de").blocks())
    src, tgt = (source.format(lang=code) for code in ("en", "de"))
    assert str(error.value) == (
        f"{src}: has {counts[0]} lines, but {tgt} has {counts[1]}; "
        "both must have one sentence a line, in the same order."
    )


def test_a_truncated_side_is_not_taken_for_a_shorter_one(tmp_path):
    whole = gzip.compress("".join(f"{n}\n" for n in range(200_000)).encode())
    for code, content in (("en", whole), ("de", whole[: len(whole) // 2])):
        (tmp_path / f"x.{code}.gz").write_bytes(content)
    with pytest.raises(
        DataError, match=r"x\.de\.gz: cannot be read as gzip \(.*\); it is cut off, fetch it again\."
    ):
        list(open_reader(str(tmp_path / "x.{lang}.gz"), "en-de").blocks())


def test_a_reader_can_be_read_twice_and_sent_to_a_worker(tmp_path):
    reader = open_reader(write(tmp_path, en="a\n", de="A\n"), "en-de")
    copy = pickle.loads(pickle.dumps(reader))
    assert list(reader.blocks()) == list(reader.blocks()) == list(copy.blocks())
    assert copy.paths == (tmp_path / "x.en", tmp_path / "x.de")


def test_a_file_removed_since_is_one_line(tmp_path):
    reader = open_reader(write(tmp_path, en="a\n", de="A\n"), "en-de")
    (tmp_path / "x.de").unlink()
    with pytest.raises(DataError) as error:
        list(reader.blocks())
    what = "no such file; its folder holds x.en."
    assert str(error.value) == f"{tmp_path / 'x.de'}: {what}"
