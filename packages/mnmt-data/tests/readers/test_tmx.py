import gzip
import logging
import tracemalloc
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.readers import open_reader
from mnmt_data.readers.reader import blocks_of
from mnmt_data.readers.tmx import tmx_pairs

BOMB = """<?xml version="1.0"?>
<!DOCTYPE tmx [
 <!ENTITY a "aaaaaaaaaa">
 <!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
]>
<tmx version="1.4"><body><tu><tuv xml:lang="en"><seg>&b;</seg></tuv></tu></body></tmx>"""
OWN_DECLARATIONS = "the document type has declarations of its own; remove them."


def document(*units):
    return f'<?xml version="1.0"?>\n<tmx version="1.4">\n<body>{"".join(units)}</body></tmx>'


def unit(**segments):
    variants = (
        f'<tuv xml:lang="{tag.replace("_", "-")}"><seg>{text}</seg></tuv>' for tag, text in segments.items()
    )
    return f"<tu>{''.join(variants)}</tu>"


def read(tmp_path, text, task="en-de"):
    path = tmp_path / "x.tmx"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return [pair for b in open_reader(str(path), task).blocks() for pair in zip(b.src, b.tgt, strict=True)]


@pytest.mark.parametrize(
    ("units", "pairs"),
    [
        ([unit(en="a", de="A")], [("a", "A")]),
        ([unit(de="A", en="a")], [("a", "A")]),
        ([unit(en_GB="a", de_AT="A")], [("a", "A")]),
        ([unit(EN_US="a", DE="A")], [("a", "A")]),
        ([unit(eng="a", deu="A")], [("a", "A")]),
        ([unit(en_US="color", en="a", de="A")], [("a", "A")]),
        ([unit(en="a", de="A")[:-5] + unit(de="second")[4:]], [("a", "A")]),
        ([unit(en="a", fr="b"), unit(fr="b", de="A"), unit(en="c", fr="d", de="C")], [("c", "C")]),
        ([unit(en="", de="A"), unit(en="<hi/>", de="B")], [("", "A"), ("", "B")]),
        (['<tu><tuv lang="en"><seg>a</seg></tuv><tuv lang="de"><seg>A</seg></tuv></tu>'], [("a", "A")]),
        (["<tu/>", "<tu><tuv xml:lang='en'/></tu>", unit(en="a", de="A")], [("a", "A")]),
        ([], []),
    ],
)
def test_units_with_both_languages_are_read(tmp_path, units, pairs):
    assert read(tmp_path, document(*units)) == pairs


def test_of_several_regions_the_first_is_read(tmp_path):
    units = [unit(en_US="color", en_GB="colour", de="A"), unit(en_GB="grey", de_AT="B", de_CH="C")]
    assert read(tmp_path, document(*units)) == [("color", "A"), ("grey", "B")]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16le", "UTF-32", "utf-32-be"])
def test_a_false_claim_of_utf_16_or_32_is_utf_8(tmp_path, encoding):
    text = document(unit(en="größer", de="A")).replace('"1.0"', f'"1.0" encoding="{encoding}"', 1)
    assert read(tmp_path, text) == [("größer", "A")]


@pytest.mark.parametrize("encoding", ["hex", "rot13", "undefined"])
def test_codecs_that_are_no_encoding_of_text_are_refused(tmp_path, encoding):
    text = document(unit(en="a", de="A")).replace('"1.0"', f'"1.0" encoding="{encoding}"', 1)
    with pytest.raises(DataError, match=f"x.tmx: declares the unknown encoding {encoding}; convert it"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("segment", "text"),
    [
        ("a &lt;b&gt; &amp; c", "a <b> & c"),
        ("caf&#xE9; <![CDATA[<b>]]>", "café <b>"),
        ("one <hi>two <hi>three</hi></hi> four", "one two three four"),
        ("a <bpt i='1'>&lt;b&gt;</bpt>bold<ept i='1'>&lt;/b&gt;</ept> word", "a bold word"),
        ("<ph>{0}</ph>x<it pos='begin'>&lt;i&gt;</it>y<ut>\\par</ut>z", "xyz"),
        ("see <ph>note <sub>a <hi>footnote</hi></sub> {1}</ph>here", "see here"),
        ("two\nlines", "two lines"),
        ("caf&eacute;&nbsp;&copy; <![CDATA[a & b &nbsp;]]>", "café\xa0© a & b &nbsp;"),
        ("<it:hi xmlns:it='x'>a</it:hi>", "a"),
        ("\n  indented\n", "   indented "),
    ],
)
def test_the_text_of_inline_elements_is_kept_but_for_native_code(tmp_path, segment, text):
    assert read(tmp_path, document(unit(en=segment, de="A"))) == [(text, "A")]


def test_notes_and_properties_are_no_text(tmp_path):
    extra = "<tu><note xml:lang='en'>a note</note><prop type='x'>p</prop>" + unit(en="a", de="A")[4:]
    assert read(tmp_path, document(extra)) == [("a", "A")]


@dataclass(frozen=True)
class Chunks:
    """A document in pieces of any size."""

    pieces: Iterable[bytes]
    path: Path = Path("x.tmx")
    name: str = "x.tmx"

    def chunks(self):
        yield from self.pieces


def pairs_of(*pieces):
    blocks = tmx_pairs(Chunks(pieces), "en-de").blocks()
    return [pair for block in blocks for pair in zip(block.src, block.tgt, strict=True)]


@pytest.mark.parametrize("size", [1, 2, 7, 4096])
@pytest.mark.parametrize("head", [0, 5000])
def test_chunks_may_fall_anywhere(size, head):
    comment = f"<!-- {unit(en='x', de='X')} <tu> -->"
    units = [unit(en="größer &amp; <ph>x</ph>mehr", de="漢字"), "<tu />", comment, unit(en="b", de="B")]
    units.append(unit(en="<![CDATA[</tu> <!-- <tu>]]>", de=f"C{comment}"))
    content = document(f"<!-- {'x' * head} -->", *units).encode()
    cut = len(content) - 800 if head else 60
    pieces = [content[:cut], *(content[at : at + size] for at in range(cut, len(content), size))]
    assert pairs_of(*pieces) == [("größer & mehr", "漢字"), ("b", "B"), ("</tu> <!-- <tu>", "C")]


def test_utf16_is_read_as_xml_declares_it(tmp_path):
    text = document(unit(en="größer", de="A")).replace('"1.0"', '"1.0" encoding="utf-16"')
    assert read(tmp_path, text.encode("utf-16")) == [("größer", "A")]


def test_a_document_type_that_is_only_named_is_let_through_and_never_fetched(tmp_path):
    named = '<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "file:///nowhere/tmx14.dtd">'
    assert read(tmp_path, document(unit(en="a", de="A")).replace('<?xml version="1.0"?>', named)) == [
        ("a", "A")
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, f"2: {OWN_DECLARATIONS}"),
        ('<!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/passwd">]><tmx/>', f"1: {OWN_DECLARATIONS}"),
        ('<!DOCTYPE tmx [<!ENTITY % x SYSTEM "http://x/x.dtd"> %x;]><tmx/>', f"1: {OWN_DECLARATIONS}"),
        (document("\n<tu>"), "4: broken XML (mismatched tag); mend or remove this unit."),
        (document(unit(en="a", de="A"))[:-13], "3: ends before </tmx>; it is cut off, fetch it again."),
        ("", " it has no elements; give a file whose is <tmx>."),
        ("<html><body/></html>", " the outermost element is <html>; give a file whose is <tmx>."),
        ("plain text\n", " it has no elements; give a file whose is <tmx>."),
    ],
)
def test_mistakes_name_file_and_line(tmp_path, text, message):
    with pytest.raises(DataError) as error:
        read(tmp_path, text)
    assert str(error.value) == f"{tmp_path / 'x.tmx'}:{message}"


def test_a_truncated_archive_is_named(tmp_path):
    path = tmp_path / "x.tmx.gz"
    path.write_bytes(gzip.compress(document(*[unit(en="a", de="A")] * 1000).encode())[:-20])
    with pytest.raises(DataError, match=r"x\.tmx\.gz: cannot be read as gzip \(.*\); it is cut off, fetch"):
        list(open_reader(str(path), "en-de").blocks())


@pytest.mark.slow
def test_memory_does_not_grow_with_the_document(monkeypatch):
    monkeypatch.setattr("mnmt_data.readers.reader.BLOCK_PAIRS", 100)
    monkeypatch.setattr(blocks_of, "__kwdefaults__", blocks_of.__kwdefaults__ | {"size": 100})
    chunk = unit(en="some text", de="etwas Text").encode() * 1000
    blocks = tmx_pairs(
        Chunks(chain([b"<tmx><body>"], repeat(chunk, 50), [b"</body></tmx>"])), "en-de"
    ).blocks()
    next(blocks)
    tracemalloc.start()
    assert sum(map(len, blocks)) >= 49_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 15 * len(chunk)


def test_a_unit_without_end_stops_reading(monkeypatch):
    monkeypatch.setattr("mnmt_data.readers.xml_units.LONGEST_LINE", 2**20)
    pieces = [b"<tmx><body><tu><tuv><seg>", *[b"x" * 2**16] * 17]
    with pytest.raises(DataError, match=r"x\.tmx:1: no unit ends within 1 MiB; give a file of <tmx>\."):
        pairs_of(*pieces)


def test_many_units_may_be_longer_than_one(monkeypatch):
    monkeypatch.setattr("mnmt_data.readers.xml_units.LONGEST_LINE", 2**12)
    chunk = unit(en="a", de="A").encode()
    assert pairs_of(b"<tmx><body>", *[chunk] * 200, b"</body></tmx>") == [("a", "A")] * 200


GOOD = unit(en="a", de="A")


@pytest.mark.parametrize(
    ("spoilt", "reason"),
    [
        (unit(en="bad &#x1F; one", de="B"), "broken XML (reference to invalid character number)"),
        (unit(en="bad \x1f one", de="B"), "holds '\\x1f', which XML or its encoding does not allow"),
        (unit(en="bad \x00 one", de="B"), "holds '\\x00', which XML or its encoding does not allow"),
        (unit(en="&#xD83D;&#xDCD6;", de="B"), "broken XML (reference to invalid character number)"),
        (unit(en="a & b", de="B"), "broken XML (not well-formed (invalid token))"),
        (unit(en="&unknown;", de="B"), "broken XML (undefined entity)"),
        (
            unit(en="b", de="B").replace(b"b".decode(), "\udce4", 1),
            "holds '\\udce4', which XML or its encoding does not allow",
        ),
        (unit(en="use <!-- here", de="B"), "broken XML (unclosed token)"),
        (unit(en="use <![CDATA[ here", de="B"), "broken XML (unclosed CDATA section)"),
        (f'<tu note="slip>{GOOD[4:]}', "broken XML (not well-formed (invalid token))"),
        ("<tu><tuv xml:lang='en'><seg>cut off</tu>", "broken XML (mismatched tag)"),
        ("<tu><tuv xml:lang='en'><seg>never ended ", "broken XML (mismatched tag)"),
    ],
)
def test_a_broken_unit_is_one_bad_line(tmp_path, spoilt, reason):
    path = tmp_path / "x.tmx"
    path.write_bytes(document("\n", GOOD, "\n", spoilt, *[GOOD] * 250).encode(errors="surrogateescape"))
    with pytest.raises(DataError) as error:
        list(open_reader(str(path), "en-de").blocks())
    assert str(error.value) == f"{path}:5: {reason}; mend or remove this unit."
    (block,) = open_reader(str(path), "en-de").blocks(skip_bad=True)
    assert (len(block), [line.row for line in block.bad]) == (252, [1])
    assert block.src[1] == block.tgt[1] == ""
    assert set(block.src[2:]) == {"a"}


@given(st.lists(st.sampled_from(["good", "bad", "french"]), min_size=1, max_size=12))
def test_every_unit_is_read_counted_or_bad(kinds):
    xml = {"good": GOOD, "bad": unit(en="&#1;", de="B"), "french": unit(en="a", fr="b")}
    content = document(*(xml[kind] for kind in kinds)).encode()
    reader = tmx_pairs(Chunks([content]), "en-de")
    if set(kinds) == {"french"}:
        with pytest.raises(DataError, match=r"no unit has a pair of en-de: \d+ lack .* has en, fr\)\.$"):
            list(reader.blocks())
        return
    (block,) = reader.blocks(skip_bad=True)
    assert (len(block), len(block.bad)) == (len(kinds) - kinds.count("french"), kinds.count("bad"))


def test_units_without_the_languages_are_counted_once(tmp_path, caplog):
    (tmp_path / "x.tmx").write_text(document(GOOD, unit(en="a", fr="b"), unit(fr="b", it="c")))
    reader = open_reader(str(tmp_path / "x.tmx"), "en-de")
    with caplog.at_level(logging.WARNING):
        list(reader.blocks(choice=lambda number: number > 0))
        assert not caplog.records
        list(reader.blocks())
    what = f"{tmp_path / 'x.tmx'}: left out of 3 units: 2 lack one of its languages"
    assert [record.getMessage() for record in caplog.records] == [what]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-le", "utf-16-be", "utf-8-sig", "cp1252"])
def test_a_document_is_read_in_its_encoding(tmp_path, encoding):
    declared = encoding if encoding == "cp1252" else "utf-8" if "8" in encoding else encoding[:6]
    text = document(unit(en="größer", de="A")).replace('"1.0"', f'"1.0" encoding="{declared}"', 1)
    assert read(tmp_path, text.encode(encoding)) == [("größer", "A")]


@pytest.mark.parametrize("comments", ["", "<!-- a comment -->"])
@pytest.mark.parametrize("size", [7, 4096])
def test_a_comment_that_never_ends_is_one_bad_unit(monkeypatch, comments, size):
    monkeypatch.setattr("mnmt_data.readers.xml_units._LONGEST_COMMENT", 1000)
    content = document(GOOD, unit(en="use <!-- here", de="B"), *[GOOD, comments] * 50).encode()
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    (block,) = tmx_pairs(Chunks(pieces), "en-de").blocks(skip_bad=True)
    assert (len(block), [line.row for line in block.bad]) == (52, [1])


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_attributes_may_hold_angle_brackets_and_slashes(size):
    texts = unit(en="a", de="A")[4:]
    content = document(f"<tu note='x -> y/>'>{texts}", f'<tu note="it\'s > / ">{texts}').encode()
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    assert pairs_of(*pieces) == [("a", "A")] * 2


def test_an_overlong_segment_is_empty(tmp_path):
    assert read(tmp_path, document(unit(en="x" * 70_000, de="A"))) == [("", "A")]
