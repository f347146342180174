import struct
import zipfile

import pytest

from mnmt_data.errors import DataError
from mnmt_data.readers import open_reader

VARIANTS = '<tuv xml:lang="en"><seg>a</seg></tuv><tuv xml:lang="de"><seg>A</seg></tuv>'
TMX = f"<tmx><body><tu>{VARIANTS}</tu></body></tmx>"
NOTHING = "has no texts of en-de and no TMX file, but must have one pair of texts or one TMX file"


def write(folder, members, compression=zipfile.ZIP_DEFLATED):
    path = folder / "x.zip"
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def read(path, task="en-de"):
    return [pair for b in open_reader(str(path), task).blocks() for pair in zip(b.src, b.tgt, strict=True)]


@pytest.mark.parametrize(
    "members",
    [
        {"X.de-en.de": "A\n", "X.de-en.en": "a\n"},
        {"X.en-de.de": "A\n", "X.en-de.en": "a\n"},
        {
            "X.de-en.de": "A\n",
            "X.de-en.en": "a\n",
            "X.de-en.xml": "<x/>",
            "X.de-en.ids": "1\n",
            "X.de-en.scores": "1\n",
        },
        {"README": "x", "LICENSE": "y", "sub/X.v2.de-en_GB.de": "A\n", "sub/X.v2.de-en_GB.en_GB": "a\n"},
        {"X.deu-eng.deu": "A\n", "X.deu-eng.eng": "a\n"},
        {"X.de-en.de": "A\n", "X.de-en.en": "a\n", "X.de-fr.de": "B\n", "X.de-fr.fr": "b\n", "x.tmx": "no"},
        {"README": "x", "de-en.tmx": TMX},
    ],
)
def test_moses_pairs_and_tmx_are_read(tmp_path, members):
    path = write(tmp_path, members)
    assert read(path) == [("a", "A")]
    assert read(path, "de-en") == [("A", "a")]
    assert open_reader(str(path), "en-de").paths == (path,)
    assert [p.name for p in tmp_path.iterdir()] == ["x.zip"]


@pytest.mark.parametrize(
    "name", ["../x.de-en.de", "/etc/x.de-en.de", "a/../../b", "..\\x", "C:\\x", "\\\\host\\x"]
)
def test_a_member_that_leads_out_of_the_archive_is_refused(tmp_path, name):
    path = write(tmp_path, {"X.de-en.de": "A\n", "X.de-en.en": "a\n", name: "x"})
    with pytest.raises(DataError) as error:
        open_reader(str(path), "en-de")
    assert str(error.value) == f"{path}: the member {name!r} leads out of the archive; do not trust it."


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({}, f"{NOTHING}; it holds nothing."),
        ({"X.de-fr.fr": "a", "README": "x"}, f"{NOTHING}; it holds README, X.de-fr.fr."),
        (
            {"a.tmx": TMX, "b.tmx": TMX},
            "has 2 TMX files, but must have one pair of texts or one TMX file; it holds a.tmx, b.tmx.",
        ),
        ({"X.de-en.de": "A\n"}, "holds X.de-en.de; give an archive with one pair of texts for en-de."),
        (
            {"X.de-en.de": "A", "X.de-en.en": "a", "Y.de-en.de": "B", "Y.de-en.en": "b"},
            "holds X.de-en.de, X.de-en.en, Y.de-en.de, Y.de-en.en; "
            "give an archive with one pair of texts for en-de.",
        ),
    ],
)
def test_what_an_archive_lacks_is_told(tmp_path, members, message):
    path = write(tmp_path, members)
    with pytest.raises(DataError) as error:
        open_reader(str(path), "en-de")
    assert str(error.value) == f"{path}: {message}"


def test_a_truncated_archive_is_one_line(tmp_path):
    path = write(tmp_path, {"X.de-en.de": "A\n" * 1000, "X.de-en.en": "a\n" * 1000})
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError) as error:
        open_reader(str(path), "en-de")
    wrong = "File is not a zip file"
    assert (
        str(error.value)
        == f"{path}: cannot be read as a zip archive ({wrong}); it is cut off or damaged, fetch it again."
    )


def test_a_damaged_member_is_one_line(tmp_path):
    path = write(tmp_path, {"X.de-en.de": "A\n" * 1000, "X.de-en.en": "a\n" * 1000}, zipfile.ZIP_STORED)
    path.write_bytes(path.read_bytes().replace(b"A\nA\nA\n", b"A\nB\nA\n", 1))
    with pytest.raises(
        DataError, match=r"x\.zip: cannot be read as a zip archive \(Bad CRC-32 for file 'X\.de-en\.de'\)"
    ):
        read(path)


def test_an_encrypted_member_is_one_line(tmp_path):
    path = write(tmp_path, {"X.de-en.de": "A\n", "X.de-en.en": "a\n"}, zipfile.ZIP_STORED)
    content = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.find(signature)
        while at >= 0:
            content[at + offset : at + offset + 2] = struct.pack("<H", 1)
            at = content.find(signature, at + 4)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"\(File .* is encrypted.*\); write it anew without that\.$"):
        read(path)


def test_a_bomb_is_stopped(tmp_path):
    path = write(tmp_path, {"X.de-en.de": b"\0" * 2**27, "X.de-en.en": b"\0" * 2**27})
    assert path.stat().st_size < 2**19
    with pytest.raises(DataError, match=r"x\.zip\(X\.de-en\.en\):1: the line is longer than 64 MiB"):
        read(path)


def test_mistakes_in_a_member_name_it(tmp_path):
    path = write(tmp_path, {"X.de-en.de": b"A\n\xff\n", "X.de-en.en": "a\nb\n"})
    with pytest.raises(DataError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}(X.de-en.de):2: not valid UTF-8")


def test_unequal_members_name_both(tmp_path):
    path = write(tmp_path, {"X.de-en.de": "A\n", "X.de-en.en": "a\nb\n"})
    with pytest.raises(DataError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}(X.de-en.en): has 2 lines, but {path}(X.de-en.de) has 1;")
