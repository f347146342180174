import pytest

from mnmt_data.fetch.libreoffice_help import page_paragraphs

PAGE = """<!DOCTYPE html>
<html lang="en-US"><head><title>Title</title></head><body>
<header><p id="outside">Help for LibreOffice</p></header>
<div id="DisplayArea">{}</div>
<footer><p id="bm_module">Module is: shared</p></footer>
</body></html>"""
SWITCH = """<p id="p">Choose <span id="s" class="switchinline">
<span hidden="true" id="MACx" class="MAC"><span class="emph">Preferences</span></span>
<span hidden="true" id="defaultx"><span class="emph">Options</span></span></span> now.</p>"""


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('<p id="par_1" class="paragraph">Plain.</p>', [("par_1", "Plain.")]),
        ('<h1 id="hd_1"><a name="x"></a>\n  Two\n words</h1>', [("hd_1", "Two words")]),
        ('<p id="p">In <b>bold</b>, <a href="x">linked</a>.</p>', [("p", "In bold, linked.")]),
        ('<p id="p">Köln — 图 &amp; &eacute;&nbsp;x</p>', [("p", "Köln — 图 & é x")]),
        ('<p>No id.</p><p id="p"> </p><div id="d">No paragraph.</div>', []),
        ('<p id="p">a<!-- hidden -->b</p>', [("p", "ab")]),
        (SWITCH, [("p", "Choose Options now.")]),
        (SWITCH.replace("defaultx", "WINx"), [("p", "Choose Preferences now.")]),
        ('<ul><li><p id="p">a</p></li><li><p id="q">b</p></li></ul>', [("p", "a"), ("q", "b")]),
        ("", []),
    ],
)
def test_paragraphs_of_a_page(content, expected):
    assert list(page_paragraphs(PAGE.format(content).encode())) == expected
