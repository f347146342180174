import gzip
import tracemalloc

import pytest

from mnmt_data.errors import DataError
from mnmt_data.readers import open_reader
from mnmt_data.readers.tmx import UnitParser

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
        (["<tu/>", "<tu><tuv xml:lang='en'/></tu>"], []),
        ([], []),
    ],
)
def test_units_with_both_languages_are_read(tmp_path, units, pairs):
    assert read(tmp_path, document(*units)) == pairs


def test_one_line_asks_which_of_several_variants(tmp_path):
    with pytest.raises(DataError, match=r"x\.tmx: en may be en-US or en-GB; .*, such as en_US-de\.$"):
        read(tmp_path, document(unit(en_US="color", en_GB="colour", de="A")))


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
        ("\n  indented\n", "   indented "),
    ],
)
def test_the_text_of_inline_elements_is_kept_but_for_native_code(tmp_path, segment, text):
    assert read(tmp_path, document(unit(en=segment, de="A"))) == [(text, "A")]


def test_notes_and_properties_are_no_text(tmp_path):
    extra = "<tu><note xml:lang='en'>a note</note><prop type='x'>p</prop>" + unit(en="a", de="A")[4:]
    assert read(tmp_path, document(extra)) == [("a", "A")]


@pytest.mark.parametrize("size", [1, 2, 7, 4096])
def test_chunks_may_fall_anywhere(size):
    content = document(unit(en="größer &amp; <ph>x</ph>mehr", de="漢字"), unit(en="b", de="B")).encode()
    parser = UnitParser("x.tmx", "en-de")
    pairs = [pair for at in range(0, len(content), size) for pair in parser.feed(content[at : at + size])]
    assert pairs + parser.finish() == [("größer & mehr", "漢字"), ("b", "B")]


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
        (
            '<!DOCTYPE tmx SYSTEM "tmx14.dtd">' + document(unit(en="caf&eacute;", de="A"))[21:],
            "3: the entity 'eacute' is not declared; write the character itself.",
        ),
        (document("\n<tu>"), "4: broken XML (mismatched tag); mend or fetch the file."),
        (document(unit(en="a", de="A"))[:-13], "3: broken XML (no element found); mend or fetch the file."),
        ("", "1: broken XML (no element found); mend or fetch the file."),
        (
            document(unit(en="a & b", de="A")),
            "3: broken XML (not well-formed (invalid token)); mend or fetch the file.",
        ),
        (
            b"<tmx><body>\n\xff</body></tmx>",
            "2: broken XML (not well-formed (invalid token)); mend or fetch the file.",
        ),
        ("<html><body/></html>", "1: the outermost element is <html>; give a TMX file, whose is <tmx>."),
        ("plain text\n", "1: broken XML (syntax error); mend or fetch the file."),
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


def test_memory_does_not_grow_with_the_document():
    parser = UnitParser("x.tmx", "en-de")
    parser.feed(b"<tmx><body>")
    chunk = unit(en="some text", de="etwas Text").encode() * 1000
    parser.feed(chunk)
    tracemalloc.start()
    for _ in range(50):
        assert len(parser.feed(chunk)) == 1000
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert grown < len(chunk)


def test_a_unit_without_end_stops_reading(monkeypatch):
    monkeypatch.setattr("mnmt_data.readers.tmx.LONGEST_LINE", 2**20)
    parser = UnitParser("x.tmx", "en-de")
    parser.feed(b"<tmx><body><tu><tuv><seg>")
    for _ in range(15):
        parser.feed(b"x" * 2**16)
    with pytest.raises(DataError, match=r"x\.tmx:1: no unit ends within 1 MiB; give a TMX file\."):
        parser.feed(b"x" * 2**16)


def test_many_units_may_be_longer_than_one(monkeypatch):
    monkeypatch.setattr("mnmt_data.readers.tmx.LONGEST_LINE", 2**12)
    parser = UnitParser("x.tmx", "en-de")
    parser.feed(b"<tmx><body>")
    chunk = unit(en="a", de="A").encode()
    assert [pair for _ in range(200) for pair in parser.feed(chunk)] == [("a", "A")] * 200


def test_an_overlong_segment_is_empty(tmp_path):
    assert read(tmp_path, document(unit(en="x" * 70_000, de="A"))) == [("", "A")]
