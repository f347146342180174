import gzip
import logging
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.readers import find_readers, open_reader, parse_markup

NEWS = """<?xml version='1.0' encoding='utf-8'?>
<dataset id="newstest2021">
  <doc origlang="en" id="d1">
    <src lang="en"><p><seg id="1">R&amp;D &lt;b&gt;</seg><seg id="2">Two
 lines</seg></p></src>
    <ref lang="de" translator="A"><p><seg id="1">A1</seg><seg id="2">A2</seg></p></ref>
    <ref lang="de" translator="B"><p><seg id="1">B1</seg></p></ref>
    <hyp system="X" language="de"><p><seg id="1">X1</seg><seg id="2">X&lt;2</seg></p></hyp>
  </doc>
  <doc origlang="de" id="d2">
    <src lang="en"><p><seg id="1">three</seg><seg id="2">no ref</seg></p></src>
    <ref lang="de" translator="A"><p><seg id="1">A3</seg></p></ref>
    <hyp system="X" language="de"><p><seg id="1"/><seg id="2">X5</seg></p></hyp>
  </doc>
  <doc origlang="de" id="d3" testsuite="x"><src lang="en"><p><seg id="1">suite</seg></p></src></doc>
</dataset>
"""
SENTENCE = st.text(st.characters(exclude_characters="\r\t\n ", exclude_categories=["Cs"]), max_size=12)


def refset(lines, *, kind="refset", end="</seg>"):
    segments = "".join(f'<seg id="{number}">{line}{end}\n' for number, line in enumerate(lines, 1))
    document = f'<doc docid="d" origlang="en">\n<p>\n{segments}</p>\n</doc>'
    return f'<{kind} setid="x" srclang="any" trglang="de">\n{document}\n</{kind}>\n'


def sentences(texts):
    return {name: texts.sentences(name) for name in texts.texts}


def only_text(document):
    return parse_markup(document.encode(), "x.sgm").text("hyp")


@given(st.lists(SENTENCE, min_size=1, max_size=6), st.booleans())
def test_sgml_comes_back_as_written(lines, closes):
    assert only_text(refset(map(escape, lines), end="</seg>" if closes else "")) == lines


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("AT&T & R&D &amp; &lt;b&gt; &quot;x&quot; &#33;", 'AT&T & R&D & <b> "x" !'),
        ("?a=1&reg=2 &copy3", "?a=1&reg=2 &copy3"),
        ("3 < 5 and <b>bold</b> x<y", "3 < 5 and <b>bold</b> x<y"),
        ("  two\n  lines ", "two lines"),
        ("a\u2028b\x85c\x0bd\x1ce", "a\u2028b\x85c\x0bd\x1ce"),
        ("<script>x</script>", "<script>x</script>"),
        ("<![CDATA[cat & <seg> dog]]>!", "cat & <seg> dog!"),
        ("a <!b c <?d e <!-- comment -->f", "a <!b c <?d e f"),
        ("", ""),
    ],
)
def test_sgml_may_be_careless(written, read):
    assert only_text(refset([written, "next"])) == [read, "next"]
    assert only_text(refset([written, "next"]).upper().replace("\u0130", "I")) == [read.upper(), "NEXT"]


@pytest.mark.parametrize("written", ["Press <p> now", "a <ref name='x'/> b", "use <!-- here", "a <?xml b"])
def test_tags_in_a_closed_segment_are_text(written):
    assert only_text(refset([written, "next"])) == [written, "next"]


def test_a_paragraph_ends_no_open_segment():
    assert only_text(refset(["Press <p> now", "next"], end="")) == ["Press now", "next"]


def test_references_without_names_and_of_several_translators():
    texts = parse_markup(
        b'<mteval><srcset srclang="en"><doc docid="d"><seg id="1">s</seg></doc></srcset>'
        b'<refset refid="r1" trglang="de"><doc docid="d"><seg id="1">one</seg></doc></refset>'
        b'<refset refid="r2" trglang="de"><doc docid="d"><seg id="1">two</seg></doc></refset></mteval>',
        "x.xml",
    )
    assert sentences(texts) == {"src": ["s"], "ref:r1": ["one"], "ref:r2": ["two"]}
    assert texts.text("src") == ["s"]
    assert texts.text("hyp", "ref:r2") == ["two"]
    with pytest.raises(
        DataError, match=r"^x\.xml: has the texts src, ref:r1, ref:r2; name one with --here\.$"
    ):
        texts.text("ref", option="--here")
    with pytest.raises(
        DataError, match=r"^x\.xml: has no text 'r' for --here; it has src, ref:r1, ref:r2\.$"
    ):
        texts.text("ref", "r", option="--here")


def test_the_xml_of_2021_keeps_segments_with_a_reference():
    texts = parse_markup(NEWS.encode(), "x.xml")
    assert sentences(texts) == {
        "src": ["R&D <b>", "Two lines", "three"],
        "ref:A": ["A1", "A2", "A3"],
        "ref:B": ["B1", "", ""],
        "X": ["X1", "X<2", ""],
    }


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_a_test_set_is_read_in_either_direction(tmp_path, encoding):
    text = NEWS.replace("three", "drüber").replace("'utf-8'", f"'{encoding.removesuffix('-sig')}'")
    (tmp_path / "x.xml.gz").write_bytes(gzip.compress(text.encode(encoding)))
    (block,) = open_reader(str(tmp_path / "x.xml.gz"), "en-de").blocks()
    assert (block.src, block.tgt) == (["R&D <b>", "Two lines", "drüber"], ["A1", "A2", "A3"])
    (other,) = open_reader(str(tmp_path / "x.xml.gz"), "de-en").blocks()
    assert (other.src, other.tgt) == (block.tgt, block.src)


def test_two_files_are_found_by_their_names_and_read_by_their_content(tmp_path):
    (tmp_path / "dev.en-de.en.sgm").write_text(refset(["a &amp; b", "c"], kind="srcset"))
    (tmp_path / "dev.en-de.de").write_text(refset(["A", "C"]))
    (reader,) = find_readers(tmp_path, "dev", "en-de")
    (block,) = reader.blocks()
    assert (block.src, block.tgt) == (["a & b", "c"], ["A", "C"])
    (tmp_path / "y.de").write_text(refset(["A", "C"]))
    (tmp_path / "y.en").write_text("a\nc\n")
    (block,) = open_reader(f"{tmp_path}/y.{{lang}}", "en-de").blocks()
    assert (block.src, block.tgt) == (["a", "c"], ["A", "C"])


def two_files(folder, src, tgt, *, src_language="any", tgt_language="de"):
    """Write two files; a text is {document: {segment: sentence}}."""
    for code, kind, attribute, text, language in (
        ("en", "srcset", "srclang", src, src_language),
        ("de", "refset", "trglang", tgt, tgt_language),
    ):
        documents = "".join(
            f'<doc docid="{name}">'
            + "".join(f'<seg id="{number}">{sentence}</seg>' for number, sentence in segments.items())
            + "</doc>"
            for name, segments in text.items()
        )
        content = f'<{kind} setid="x" {attribute}="{language}">{documents}</{kind}>'
        (folder / f"x.en-de.{code}.sgm").write_text(content)
    return f"{folder}/x.en-de.{{lang}}.sgm"


CAT_DOG = {"A": {1: "cat"}, "B": {1: "dog"}}


@pytest.mark.parametrize("language", ["any", "en", "english", "en-GB"])
def test_two_files_are_joined_by_document_and_segment(tmp_path, language):
    source = two_files(tmp_path, CAT_DOG, {"B": {1: "Hund"}, "A": {1: "Katze"}}, src_language=language)
    for reader in (open_reader(source, "en-de"), *find_readers(tmp_path, "x", "en-de")):
        (block,) = reader.blocks()
        assert (block.src, block.tgt) == (["cat", "dog"], ["Katze", "Hund"])
    (block,) = open_reader(source, "de-en").blocks()
    assert (block.src, block.tgt) == (["Hund", "Katze"], ["dog", "cat"])


@pytest.mark.parametrize(
    ("tgt", "language", "message"),
    [
        ({"A": {1: "eins"}, "B": {2: "zwei"}}, "en",
         "x.en-de.de.sgm: lacks 1 segments of {}/x.en-de.en.sgm, the first 1 of document B; give two files"),
        ({**CAT_DOG, "C": {3: "mehr"}}, "en",
         "x.en-de.en.sgm: lacks 1 segments of {}/x.en-de.de.sgm, the first 3 of document C; give two files"),
        (CAT_DOG, "fr", "x.en-de.en.sgm: is of fr, not of en."),
    ],
)  # fmt: skip
def test_two_files_of_other_segments_or_languages_are_refused(tmp_path, tgt, language, message):
    source = two_files(tmp_path, CAT_DOG, tgt, src_language=language)
    with pytest.raises(DataError) as error:
        open_reader(source, "en-de")
    assert str(error.value).startswith(f"{tmp_path}/{message.format(tmp_path)}")


def test_of_several_references_the_first_is_read(tmp_path, caplog):
    (tmp_path / "x.en").write_text("s\n")
    sets = (f'<refset refid="{name}" trglang="de"><doc docid="d"><seg id="1">{name}</seg></doc></refset>'
            for name in ("one", "two"))  # fmt: skip
    (tmp_path / "x.de").write_text(f"<mteval>{''.join(sets)}</mteval>")
    with caplog.at_level(logging.WARNING):
        (block,) = open_reader(f"{tmp_path}/x.{{lang}}", "en-de").blocks()
    assert block.tgt == ["one"]
    what = f"{tmp_path}/x.de: holds the texts ref:one, ref:two; the first is read"
    assert [record.getMessage() for record in caplog.records] == [what]


@pytest.mark.parametrize(
    ("content", "task", "message"),
    [
        (NEWS, "en-fr", "is of en and de, not of en-fr."),
        (
            refset(["a"]),
            "en-de",
            "must hold a source and a reference, but holds ref; name two files with {lang}",
        ),
        ("text\n", "en-de", "must hold a source and a reference, but holds no mark-up;"),
        (
            "<?xml version='1.0'?><a/>",
            "en-de",
            "is mark-up (<a/) without a document of <seg>; give text",
        ),
        (
            "<?xml encoding='klingon'?><a/>",
            "en-de",
            "declares the unknown encoding klingon; convert it to UTF-8.",
        ),
        (b"<?xml encoding='us-ascii'?>\n<seg>\xe4", "en-de", "2: not valid ascii, which it declares; mend"),
        (b"<refset>\n<seg>\xe4", "en-de", "2: not valid UTF-8 (byte 0xe4); perhaps it is Windows-1252"),
    ],
)
def test_mistakes_are_named(tmp_path, content, task, message):
    path = tmp_path / "x.xml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DataError) as error:
        open_reader(str(path), task)
    assert str(error.value).removeprefix(f"{path}:").strip().startswith(message)


def test_an_output_that_lacks_segments_is_refused():
    texts = parse_markup(NEWS.replace('<seg id="1"/>', "").encode(), "x.xml")
    with pytest.raises(DataError, match=r"^x\.xml: X lacks 1 of 3 segments; add them\.$"):
        texts.text("hyp")
    assert texts.text("ref", "ref:B") == ["B1", "", ""]
