import logging
from xml.sax.saxutils import escape

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.readers import find_readers, open_reader

XML_ONLY = "".join(map(chr, [*range(32), 0xFFFE, 0xFFFF]))
SENTENCE = st.text(st.characters(exclude_characters=XML_ONLY, exclude_categories=["Cs"]), max_size=12)


def xliff(*units, languages='source-language="en" target-language="de"'):
    return (
        '<?xml version="1.0"?><xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
        f'<file {languages} datatype="plaintext" original="x"><body>{"".join(units)}</body></file></xliff>'
    )


def xliff2(*segments, languages='srcLang="en" trgLang="de"'):
    return (
        f'<xliff version="2.0" {languages} xmlns="urn:oasis:names:tc:xliff:document:2.0">'
        f'<file id="f1"><unit id="u1">{"".join(segments)}</unit></file></xliff>'
    )


def unit(src, tgt, more=""):
    return f'<trans-unit id="1"><source>{src}</source><target>{tgt}</target>{more}</trans-unit>'


def marked(*sentences):
    marks = (f'<mrk mtype="seg" mid="{number}">{text}</mrk>' for number, text in enumerate(sentences, 1))
    return " ".join(marks)


def segment(src, tgt):
    return f"<segment><source>{src}</source><target>{tgt}</target></segment>"


def read(folder, text, task="en-de", name="x.xlf", **how):
    (folder / name).write_text(text, encoding="utf-8")
    (block,) = open_reader(str(folder / name), task).blocks(**how)
    return list(zip(block.src, block.tgt, strict=True))


@pytest.mark.parametrize("name", ["x.xlf", "x.xliff", "x.sdlxliff", "x.mqxliff", "x.MXLIFF"])
def test_a_unit_is_a_pair_in_either_direction(tmp_path, name):
    text = xliff('<trans-unit id="1"><source>Hello</source><target state="final">Hallo</target></trans-unit>')
    assert read(tmp_path, text, name=name) == [("Hello", "Hallo")]
    assert read(tmp_path, text, "de-en", name=name) == [("Hallo", "Hello")]


def test_a_file_named_for_the_task_is_found(tmp_path):
    (tmp_path / "train.en-de.xlf").write_text(xliff(unit("a", "A")))
    assert len(find_readers(tmp_path, "train", "en-de")) == len(find_readers(tmp_path, "train", "de-en")) == 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(SENTENCE, SENTENCE.filter(str.strip)), min_size=1, max_size=6), st.booleans())
def test_any_text_comes_back(tmp_path, pairs, is_2):
    write, one = (xliff2, segment) if is_2 else (xliff, unit)
    assert read(tmp_path, write(*(one(escape(src), escape(tgt)) for src, tgt in pairs))) == pairs


@pytest.mark.parametrize(
    ("xml", "pairs"),
    [
        (unit('<g id="1">Click</g> <x id="2"/>here', 'Hier <bpt id="1">&lt;b&gt;</bpt>klicken<ept id="1"/>'),
         [("Click here", "Hier klicken")]),
        (unit("a", "A", "<alt-trans><source>b</source><target>B</target></alt-trans><note>n</note>"),
         [("a", "A")]),
        (unit("One. Two.", marked("Eins.", "Zwei."), f"<seg-source>{marked('One.', 'Two.')}</seg-source>"),
         [("One. Two.", "Eins. Zwei.")]),
        ("<group>" + unit("a", "A") + "<bin-unit/>" + unit("two\nlines", "B") + "</group>",
         [("a", "A"), ("two lines", "B")]),
        (unit("a&nbsp;b", "<![CDATA[<b>A</b> & B]]>"), [("a\xa0b", "<b>A</b> & B")]),
    ],
)  # fmt: skip
def test_xliff_1_2(tmp_path, xml, pairs):
    assert read(tmp_path, xliff(xml)) == pairs
    prefixed = xliff(xml).replace("<trans-unit", "<x:trans-unit").replace("</trans-unit", "</x:trans-unit")
    assert read(tmp_path, prefixed) == pairs


@pytest.mark.parametrize(
    ("xml", "pairs"),
    [
        (segment('<pc id="1">Hello</pc> <ph id="2"/><cp hex="001A"/>you', "Hallo <mrk id='m'>du</mrk>"),
         [("Hello \x1ayou", "Hallo du")]),
        (segment("a", "A") + "<ignorable><source> </source></ignorable>" + segment("b", "B"),
         [("a", "A"), ("b", "B")]),
        ('<mtc:matches><mtc:match ref="#1"><source>x</source><target>X</target></mtc:match></mtc:matches>'
         + segment("a", "A"), [("a", "A")]),
    ],
)  # fmt: skip
def test_xliff_2(tmp_path, xml, pairs):
    assert read(tmp_path, xliff2(xml)) == pairs


def test_untranslated_units_are_counted(tmp_path, caplog):
    none = "<trans-unit id='2'><source>b</source></trans-unit>"
    new = unit("c", "C").replace("<target", '<target state="needs-translation"')
    with caplog.at_level(logging.WARNING):
        assert read(tmp_path, xliff(unit("a", "A"), none, new, unit("d", ""))) == [("a", "A")]
    what = f"{tmp_path / 'x.xlf'}: left out of 4 units: 3 are not translated"
    assert [record.getMessage() for record in caplog.records] == [what]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (xliff(unit("a", "A"), languages='source-language="en-US" target-language="fr"'),
         " no unit has a pair of en-de: 1 are of other languages (the first is from en-US to fr)."),
        (xliff(unit("a", "")), " no unit has a pair of en-de: 1 are not translated."),
        (xliff(unit("a", "A"))[:-20], "1: ends before </xliff>; it is cut off, fetch it again."),
        (xliff(unit("a &#2;", "A")), "1: broken XML (reference to invalid character number); mend or remove"),
        ("<tmx/>", " the outermost element is <tmx>; give a file whose is <xliff>."),
    ],
)  # fmt: skip
def test_mistakes_are_named(tmp_path, text, message):
    with pytest.raises(DataError) as error:
        read(tmp_path, text)
    assert str(error.value).startswith(f"{tmp_path / 'x.xlf'}:{message}")


@pytest.mark.parametrize(
    "languages",
    ['source-language="en-GB" target-language="de"', 'target-language="de-AT" source-language="eng"'],
)
def test_codes_may_have_regions(tmp_path, languages):
    assert read(tmp_path, xliff(unit("a", "A"), languages=languages)) == [("a", "A")]


def test_a_target_may_name_its_language_and_units_without_are_counted(tmp_path, caplog):
    named = unit("a", "A").replace("<target", '<target xml:lang="de"')
    text = xliff(named, unit("b", "B"), languages='source-language="en"')
    with caplog.at_level(logging.WARNING):
        assert read(tmp_path, text) == [("a", "A")]
    what = f"{tmp_path / 'x.xlf'}: left out of 2 units: 1 lack a language"
    assert [record.getMessage() for record in caplog.records] == [what]


@pytest.mark.parametrize("original", ['"x -> y"', "'x -> \"y\"'", '"it\'s"'])
def test_the_start_tag_of_each_file_gives_its_languages(tmp_path, original):
    other = f'<file original={original} source-language="fr" target-language="es"><body>{unit("b", "B")}'
    text = xliff(unit("a", "A")).replace("</xliff>", f"{other}</body></file></xliff>")
    assert read(tmp_path, text) == [("a", "A")]
    assert read(tmp_path, text, "fr-es") == [("b", "B")]


def test_an_initial_segment_is_untranslated(tmp_path):
    initial = segment("b", "B").replace("<segment", '<segment state="initial"')
    assert read(tmp_path, xliff2(segment("a", "A"), initial)) == [("a", "A")]


@pytest.mark.parametrize("number", ["ZZ", "FFFFFFFF", "FFFFFFFFFFFFFFFFFF", "D800", ""])
def test_a_number_of_no_character_is_one_bad_unit(tmp_path, number):
    text = xliff2(segment("a", "A"), segment(f'<cp hex="{number}"/>', "B"), segment("c", "C"))
    with pytest.raises(DataError, match=rf'x\.xlf:1: <cp hex="{number}"/> is no character; mend or remove'):
        read(tmp_path, text)
    assert read(tmp_path, text, skip_bad=True) == [("a", "A"), ("", ""), ("c", "C")]
