import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.fetch.interface_text import (
    accelerator_mark,
    plain_placeholders,
    plain_text,
    without_accelerator,
    without_markup,
)


@pytest.mark.parametrize(
    ("strings", "mark"),
    [
        (["_File", "Zoom _In", "the file max_size"], "_"),
        (["&File", "Save &As", "x_y"], "&"),
        (["max_size is wrong", "R&D", "a & b", "~user"], ""),
        (["_File", *["plain"] * 200], ""),
        ([], ""),
    ],
)
def test_mark_of_a_catalogue(strings, mark):
    assert accelerator_mark(strings) == mark


@pytest.mark.parametrize(
    ("mark", "string", "expected"),
    [
        ("_", "_File", "File"),
        ("_", "E_xit", "Exit"),
        ("_", "Ö_ffnen …", "Öffnen …"),
        ("_", "ファイル(_F)", "ファイル"),
        ("_", "文件 (_F)…", "文件…"),
        ("_", "set max_size of the file that is open", "set max_size of the file that is open"),
        ("_", "Open the _file that was open the last time", "Open the file that was open the last time"),
        ("_", "a_b and c_d", "a_b and c_d"),
        ("_", "__init__", "_init_"),
        ("&", "Save &As", "Save As"),
        ("&", "Salt && &Pepper", "Salt & Pepper"),
        ("&", "R&D", "R&D"),
        ("&", "a &lt; b", "a &lt; b"),
        ("&", "a & b", "a & b"),
        ("", "_File &Save", "_File &Save"),
    ],
)
def test_accelerators_are_not_part_of_the_text(mark, string, expected):
    assert without_accelerator(string, mark) == expected


@pytest.mark.parametrize(
    ("string", "expected"),
    [
        ("<b>Note:</b> a &lt; b &amp; c", "Note: a < b & c"),
        ("<span size='larger' weight=\"bold\">Title</span>", "Title"),
        ("<para>One.</para><para>Two.</para>", " One.  Two. "),
        ("one<br/>two<br>three", "one two three"),
        ("usage: git add <file> and <a-b>", "usage: git add <file> and <a-b>"),
        ("<b>x</b> and <file>", "x and <file>"),
        ("if a < b and c > d", "if a < b and c > d"),
        ("&nosuch; R&D &#8230;", "&nosuch; R&D …"),
    ],
)
def test_markup_is_not_part_of_the_text(string, expected):
    assert without_markup(string) == expected


@pytest.mark.parametrize(
    ("string", "expected"),
    [
        ("%s of %d", "{1} of {2}"),
        ("%2$s von %1$d", "{2} von {1}"),
        ("%-10.3f %ld %zu %#x %*d %c", "{1} {2} {3} {4} {5} {6}"),
        ("100%% of %s", "100% of {1}"),
        ("100% of it", "100% of it"),
        ("%1 files in %2", "{1} files in {2}"),
        ("%1% files, 10%", "{1} files, 10%"),
        ("%(name)s has %(count)d", "{name} has {count}"),
        ("{} of {}", "{1} of {2}"),
        ("{0} of {1:>10} {name!r}", "{1} of {2} {name}"),
        ("${user} and %{host}", "{user} and {host}"),
        ("a {b,c} set {{x}}", "a {b,c} set {{x}}"),
        ("cannot open %m", "cannot open {1}"),
        ("%qD lacks %<const %s%>", "{1} lacks 'const {2}'"),
        ("no placeholder", "no placeholder"),
    ],
)
def test_placeholders_have_one_notation(string, expected):
    assert plain_placeholders(string) == expected


@given(st.text(alphabet="ab %${}()0123<>/&;_s", max_size=30), st.sampled_from(["", "_", "&"]))
def test_any_string_becomes_one_line_without_spaces_at_its_ends(string, mark):
    text = plain_text(string, mark)
    assert text == " ".join(text.split())


def test_all_marks_go_together():
    assert plain_text("<b>_Open</b>\n %s &amp; %1$s", "_") == "Open {1} & {1}"
