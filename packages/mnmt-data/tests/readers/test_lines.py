import bz2
import codecs
import gzip
import logging
import lzma
import random
import tracemalloc
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from backports import zstd as zstd_module
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.readers import lines as lines_module
from mnmt_data.readers.byte_sources import CODECS, File
from mnmt_data.readers.lines import Lines, LineSplitter, lines_of
from mnmt_data.readers.reader import LONGEST_LINE, LONGEST_SENTENCE

LINE = st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=12)


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def zstd(content):
    return zstd_module.compress(content, options={zstd_module.CompressionParameter.checksum_flag: 1})


PACKS = {"": bytes, ".gz": gzip.compress, ".zst": zstd, ".xz": lzma.compress, ".bz2": bz2.compress}


def read(path):
    return Lines(File(path)).take(10**9)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("a\nb\n", ["a", "b"]),
        ("a\nb", ["a", "b"]),
        ("a\n\nb\n", ["a", "", "b"]),
        ("a\n\n", ["a", ""]),
        ("", []),
        ("\n", [""]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("a\r\nb\r", ["a", "b"]),
        ("a\rb\r\r\nc\nd\ne\nf\n", ["a\rb\r", "c", "d", "e", "f"]),
        ("\ufeffa\n\ufeffb\n", ["a", "\ufeffb"]),
        ("\ufeff", []),
        ("a\x00b\n\x00\n", ["a\x00b", "\x00"]),
        ("a\x85b\nc\n", ["a\x85b", "c"]),
        ("a\u2028b\u2029c\x0bd\x0ce\x1cf\n", ["a\u2028b\u2029c\x0bd\x0ce\x1cf"]),
    ],
)
@pytest.mark.parametrize(("ending", "pack"), PACKS.items())
def test_only_newlines_end_lines(tmp_path, content, lines, ending, pack):
    path = write(tmp_path, f"text{ending}", pack(content.encode()))
    assert read(path) == lines_of(File(path).read(), str(path)) == lines


@given(st.lists(LINE, max_size=8), st.lists(st.integers(0, 200), max_size=6), st.booleans())
def test_lines_are_the_same_however_the_chunks_fall(lines, cuts, ends):
    content = b"\n" + "\n".join(lines).encode() + (b"\n" if ends else b"")
    bounds = [0, *sorted(min(cut, len(content)) for cut in cuts), len(content)]
    splitter = LineSplitter("text")
    pieces = [content[start:stop] for start, stop in pairwise(bounds) if start < stop]
    given_lines = [line for piece in pieces for line in splitter.decode(splitter.feed(piece))]
    wanted = content.decode().split("\n")
    assert given_lines + splitter.decode(splitter.finish()) == (wanted[:-1] if wanted[-1] == "" else wanted)


def test_a_character_cut_in_two_by_a_chunk_is_whole_again():
    splitter = LineSplitter("text")
    content = "größer\nПривет\n".encode()
    pieces = [splitter.decode(splitter.feed(content[at : at + 1])) for at in range(len(content))]
    assert [line for piece in pieces for line in piece] == ["größer", "Привет"]


def test_lines_can_be_taken_and_the_rest_counted(tmp_path):
    lines = Lines(File(write(tmp_path, "text", "a\nb\nc\nd")))
    assert lines.take(1) == ["a"]
    assert lines.take(2) == ["b", "c"]
    assert lines.count() == 4
    assert lines.take(1) == []


LATIN = "perhaps it is Windows-1252 or ISO-8859-1; convert the file to UTF-8"
OTHER = "perhaps it is Windows-1251, GB18030 or Shift_JIS; convert the file to UTF-8"


@pytest.mark.parametrize(
    ("content", "line", "byte", "remedy"),
    [
        (b"a\nb\xffc\n", 2, "0xff", LATIN),
        (b"a\nb\nab\xc3", 3, "0xc3", LATIN),
        (b"\xe4rger in Latin-1\n", 1, "0xe4", LATIN),
        ("größer\nmüßig weiß\n".encode("latin-1"), 1, "0xf6", LATIN),
        ("Über Maß\nÄrger, größer\n".encode("cp1252"), 1, "0xdc", LATIN),
        ("Привет, мир\n".encode("cp1251"), 1, "0xcf", OTHER),
        ("你好，世界\n".encode("gb18030"), 1, "0xc4", OTHER),
        ("größer\nÄrger\n".encode() + b"d\xe4s\n", 3, "0xe4", "other lines are, so mend or remove this one"),
    ],
)
def test_the_line_that_is_not_utf8_is_named(tmp_path, content, line, byte, remedy):
    path = write(tmp_path, "text", content)
    for reads in (read, lambda path: lines_of(File(path).read(), str(path))):
        with pytest.raises(DataError) as error:
            reads(path)
        assert str(error.value) == f"{path}:{line}: not valid UTF-8 (byte {byte}); {remedy}."


def test_the_faulty_line_is_counted_over_all_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr("mnmt_data.readers.byte_sources.CHUNK_BYTES", 64)
    path = write(tmp_path, "text", b"a line\n" * 1000 + b"\xff\n")
    with pytest.raises(DataError, match=r"text:1001: not valid UTF-8"):
        read(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (codecs.BOM_UTF16_LE + "ab\n".encode("utf-16-le"), "is UTF-16 or UTF-32 text"),
        (codecs.BOM_UTF16_BE + "ab\n".encode("utf-16-be"), "is UTF-16 or UTF-32 text"),
        (("A sentence of some length.\n" * 2).encode("utf-16-le"), "every other byte is NUL, as in UTF-16"),
        (("A sentence of some length.\n" * 2).encode("utf-16-be"), "every other byte is NUL, as in UTF-16"),
        (gzip.compress(b"a\n", mtime=0), "is gzip-compressed; unpack it, or let its name end in .gz."),
        (zstd(b"a\n"), "is zstd-compressed; unpack it, or let its name end in .zst."),
        (
            b"\x50\x2a\x4d\x18\0\0\0\0" + zstd(b"a\n"),
            "is zstd-compressed; unpack it, or let its name end in .zst.",
        ),
        (lzma.compress(b"a\n"), "is xz-compressed; unpack it, or let its name end in .xz."),
        (bz2.compress(b"a\n"), "is bzip2-compressed; unpack it, or let its name end in .bz2."),
        (b"PK\x03\x04 and on", "is a zip archive, not text."),
        (b"\0" * 257 + b"ustar  ", "is a tar archive, not text."),
        (b"a\n" + b"\0" * 16, "2: has 16 NUL bytes or more in a row, as a file that was not written whole"),
        (b"version https://git-lfs.github.com/spec/v1\n", "is a pointer of Git LFS, not text."),
        (b"%PDF-1.7\n", "is PDF, not text."),
        (
            b"<!DOCTYPE html>\n<p>404",
            "is mark-up (<!DOCTYPE html), not a sentence a line; give text.",
        ),
        (
            b'\xef\xbb\xbf<?xml version="1.0"?>\n<tmx/>\n',
            "is mark-up (<tmx/), not a sentence a line; give text, or to mnmt-data a file whose name ends in",
        ),
        (
            b'<refset setid="x">\n',
            'is WMT\'s mark-up (<refset setid="x"), not a sentence a line; give text, as',
        ),
        (b"<!doctype mteval SYSTEM 'x'>\n", "is WMT's mark-up (<!doctype mteval SYSTEM 'x'), not"),
        (b"<?xml version='1.0'?><dataset id='n'>", "is WMT's mark-up (<dataset id='n'), not"),
        (
            b"<?xml version='1.0'?>\n<!-- of\n2021 --><!-- --><dataset>",
            "is WMT's mark-up (<dataset), not a sentence a line; give text, as `sacrebleu",
        ),
        (
            b"<!-- x --><tstset>",
            "is WMT's mark-up (<tstset), not a sentence a line; give its segments as text.",
        ),
        (b"<DOC docid='d' sysid='s'>\n", "is WMT's mark-up (<DOC docid='d' sysid='s'), not"),
        (b"one\rtwo\rthree\r", "its lines end in carriage returns alone (CR, of classic Mac OS); convert"),
        (b"one\rtwo\nthree\rfour\n", "its lines end in carriage returns alone"),
    ],
)
def test_what_is_not_utf8_from_the_start_is_told(tmp_path, content, message):
    path = write(tmp_path, "text", content)
    with pytest.raises(DataError) as error:
        read(path)
    assert str(error.value).removeprefix(f"{path}:").lstrip().startswith(message)
    assert str(error.value).count("\n") == 0
    with pytest.raises(DataError) as other:
        lines_of(content, str(path))
    assert str(other.value) == str(error.value)


@pytest.mark.parametrize("ending", [".gz", ".zst", ".xz", ".bz2"])
@pytest.mark.parametrize("cut", [-1, -9, 12])
@pytest.mark.parametrize("members", [1, 2])
def test_a_truncated_file_is_never_taken_as_whole(tmp_path, ending, cut, members):
    member = PACKS[ending](b"line\n" * 50_000)
    path = write(tmp_path, f"text{ending}", member * (members - 1) + member[:cut])
    with pytest.raises(DataError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}: cannot be read as {CODECS[ending]} (")
    assert str(error.value).endswith("; it is cut off, fetch it again.")


@pytest.mark.parametrize("ending", [".gz", ".zst", ".xz", ".bz2"])
def test_a_damaged_file_is_never_taken_as_whole(tmp_path, ending):
    packed = bytearray(PACKS[ending](bytes(random.Random(1).choices(b"abcdefghij\n", k=100_000))))
    packed[len(packed) // 2] ^= 0x55
    with pytest.raises(DataError, match=r"; it is cut off or damaged, fetch it again\.$"):
        read(write(tmp_path, f"text{ending}", bytes(packed)))


@pytest.mark.parametrize("ending", [".gz", ".zst", ".xz", ".bz2"])
@pytest.mark.parametrize("codec", ["", ".gz", ".zst", ".xz", ".bz2"])
def test_a_name_that_belies_the_codec_is_told(tmp_path, ending, codec):
    path = write(tmp_path, f"text{ending}", PACKS[codec](b"some text\n"))
    if ending == codec:
        assert read(path) == ["some text"]
        return
    name = CODECS[ending]
    said = (
        f"is {CODECS[codec]}, not {name}; let its name end in {codec}"
        if codec
        else (f"is not {name}, though its name says so; give it the ending of what it is")
    )
    with pytest.raises(DataError) as error:
        read(path)
    assert str(error.value) == f"{path}: {said}."
    path.write_bytes(b"")
    with pytest.raises(DataError, match=rf"is empty, which {name} never is; write or fetch it again\.$"):
        read(path)


@given(
    lines=st.lists(LINE, max_size=8),
    ending=st.sampled_from([".gz", ".zst", ".xz", ".bz2"]),
    at=st.integers(0, 40),
)
def test_members_that_were_joined_are_all_read(tmp_path_factory, lines, ending, at):
    content, path = "".join(f"{line}\n" for line in ["x", *lines]).encode(), tmp_path_factory.getbasetemp()
    packed = PACKS[ending](content[:at]) + PACKS[ending](content[at:])
    assert read(write(path, f"joined{ending}", packed)) == ["x", *lines]


@pytest.mark.parametrize(("ending", "more"), [(".gz", b"junk"), (".zst", b"junk"), (".zst", bytes(16))])
def test_bytes_after_the_last_member_are_told_from_damage(tmp_path, ending, more):
    path = write(tmp_path, f"text{ending}", PACKS[ending](b"one\n") + more)
    with pytest.raises(
        DataError, match=rf"{ending}: other bytes follow its {CODECS[ending]} data \(.*\); remove"
    ):
        read(path)


def test_gzip_may_have_padding_between_and_after_its_members(tmp_path):
    packed = gzip.compress(b"one\n") + bytes(512) + gzip.compress(b"two\n") + bytes(512)
    assert read(write(tmp_path, "a.gz", packed)) == ["one", "two"]


@pytest.mark.parametrize("log", [27, 29, 31])
def test_zstd_may_have_windows_of_up_to_2_gib_and_frames_to_skip(tmp_path, log):
    options = {
        zstd_module.CompressionParameter.window_log: log,
        zstd_module.CompressionParameter.checksum_flag: 1,
    }
    stream = zstd_module.ZstdCompressor(options=options)  # whose frames do not know their size
    packed = stream.compress(b"one\n" * 1000) + stream.flush()
    skipped = b"\x50\x2a\x4d\x18\x04\0\0\0abcd"
    assert read(write(tmp_path, "a.zst", skipped + packed + skipped + packed)) == ["one"] * 2000


@pytest.mark.parametrize("size", [LONGEST_SENTENCE + 1, 300_000, 3_000_000])
@pytest.mark.parametrize("letter", ["x", "ж", "漢", "😀"])
def test_an_overlong_line_is_empty_and_keeps_its_place(tmp_path, caplog, size, letter):
    path = write(tmp_path, "text", f"first\n{letter * size}\nlast")
    with caplog.at_level(logging.WARNING):
        assert read(path) == ["first", "", "last"]
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}:2: longer than {LONGEST_SENTENCE} characters, taken as empty; so are others like it"
    ]


@pytest.mark.parametrize("letter", ["x", "😀"])
def test_the_longest_sentence_is_given(tmp_path, letter):
    line = letter * LONGEST_SENTENCE
    assert read(write(tmp_path, "text", f"{line}\n{line}")) == [line, line]


def test_many_overlong_lines_are_logged_once(tmp_path, caplog):
    line = "x" * 400_000
    assert read(write(tmp_path, "text", f"{line}\n{line}\r\n{line}")) == ["", "", ""]
    assert len(caplog.records) == 1


@dataclass(frozen=True)
class Repeated:
    """A source that says the same over and over, as a decompression bomb does."""

    chunk: bytes
    times: int
    path: Path = Path("bomb.gz")
    name: str = "bomb.gz"

    def chunks(self):
        for _ in range(self.times):
            yield self.chunk


def test_a_line_without_end_stops_reading_in_bounded_memory():
    bomb = Lines(Repeated(chunk=b"\0" * 2**18, times=2 * LONGEST_LINE // 2**18))
    tracemalloc.start()
    with pytest.raises(DataError) as error:
        bomb.take(1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < LONGEST_LINE // 16
    assert str(error.value) == "bomb.gz:1: the line is longer than 64 MiB; give text, a sentence a line."


def test_lines_just_short_of_the_limit_do_not_add_up_to_it(monkeypatch):
    monkeypatch.setattr(lines_module, "LONGEST_LINE", 2**20)
    source = Repeated(chunk=b"y" * 300_000 + b"\n" + b"y" * 300_000, times=10)
    assert Lines(source).take(100) == [""] * 11
