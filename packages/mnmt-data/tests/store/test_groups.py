import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.store.groups import Groups, groups_path, read_groups, write_groups


@pytest.mark.parametrize(
    ("language", "line", "length"),
    [
        ("en", "", 0),
        ("en", "one two", 0),
        ("en", " ".join("abcdefghi"), 0),
        ("en", " ".join("abcdefghij"), 10),
        ("de_AT", " ".join("abcdefghijklmnopqrs"), 10),
        ("en", "a " * 1000, 50),
        ("zh", "房" * 19, 0),
        ("zh_CN", "房" * 20, 20),
        ("jpn_Jpan", "房" * 500, 100),
    ],
)
def test_length_is_in_words_or_where_none_are_written_in_characters(language, line, length):
    assert Groups.of([line], origins=["en"], language=language).lengths == [length]


@given(st.lists(st.tuples(st.sampled_from(["", "en", "de"]), st.sampled_from([0, 10, 50]))))
def test_what_is_written_is_read_again(tmp_path_factory, pairs):
    groups = Groups(origins=[origin for origin, _ in pairs], lengths=[length for _, length in pairs])
    folder = tmp_path_factory.mktemp("text")
    write_groups(folder, "news", "en-de", groups)
    assert read_groups(folder, "news", "en-de") == groups
    assert read_groups(folder, "test", "en-de") is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ":1: must be"),
        ("origin length\n", ":1: must be"),
        ("origin\tlength\nen\n", ":2: must end with a length"),
    ],
)
def test_broken_files_are_named(tmp_path, content, message):
    path = groups_path(tmp_path, "news", "en-de")
    path.write_text(content)
    with pytest.raises(DataError) as raised:
        read_groups(tmp_path, "news", "en-de")
    assert str(raised.value).startswith(f"{path}{message}")
