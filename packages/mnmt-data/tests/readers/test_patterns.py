import gzip

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.readers import open_reader, open_readers

NAME = st.text("ab.[]?*{}-_ é", min_size=1, max_size=5).filter(lambda name: name.strip(". "))


def write(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = f"{name}\t{name.upper()}\n".encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)


def names_of(folder, source, task="en-de"):
    readers = open_readers(f"{folder}/{source}", task)
    return [[str(path.relative_to(folder)) for path in reader.paths] for reader in readers]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("*.tsv.gz", [["part-1.tsv.gz"], ["part-2.tsv.gz"]]),
        ("part-?.tsv.gz", [["part-1.tsv.gz"], ["part-2.tsv.gz"]]),
        ("part-[2-9].tsv.gz", [["part-2.tsv.gz"]]),
        ("*/*.tsv", [["more/x.tsv"]]),
        ("**/*.tsv", [["more/x.tsv"], ["y[1].tsv"]]),
        ("y[1].tsv", [["y[1].tsv"]]),
        (".*.tsv", [[".hidden.tsv"]]),
    ],
)
def test_wildcards_give_a_reader_for_each_file(tmp_path, source, found):
    write(tmp_path, "part-2.tsv.gz", "part-1.tsv.gz", "more/x.tsv", "y[1].tsv", ".hidden.tsv")
    assert names_of(tmp_path, source) == found


def test_several_files_are_several_readers(tmp_path):
    write(tmp_path, "a.tsv", "b.tsv")
    with pytest.raises(DataError, match=r"\*\.tsv: 2 files match; name one of them\.$"):
        open_reader(f"{tmp_path}/*.tsv", "en-de")
    with pytest.raises(DataError, match=r"\*\.csv: no file matches; its folder holds .*\.tsv\.$"):
        open_readers(f"{tmp_path}/*.csv", "en-de")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("*.{lang}", [["a.en", "a.de"], ["b.c.en", "b.c.de"]]),
        ("[b-z]*.{lang}", [["b.c.en", "b.c.de"]]),
        ("{lang}/*.{lang}.txt", [["en/x.en.txt", "de/x.de.txt"], ["en/y.en.txt", "de/y.de.txt"]]),
        ("news-*.{lang}.txt", [["news-src.en.txt", "news-ref.de.txt"]]),
        ("z[1].{lang}.t", [["z[1].en.t", "z[1].deu.t"]]),
    ],
)
def test_wildcards_and_languages_give_a_pair_for_each_text(tmp_path, source, found):
    write(tmp_path, "a.en", "a.de", "b.c.en", "b.c.de", "b.fr-it.fr", "b.fr-it.it", "z[1].en.t", "z[1].deu.t")
    write(tmp_path, *(f"{code}/{name}.{code}.txt" for code in ("en", "de") for name in "yx"))
    write(tmp_path, "news-src.en.txt", "news-ref.de.txt")
    assert names_of(tmp_path, source) == found
    assert names_of(tmp_path, source, "de-en") == [pair[::-1] for pair in found]


def test_a_text_without_its_other_side_is_named(tmp_path):
    write(tmp_path, "a.en", "a.de", "b.en")
    with pytest.raises(
        DataError, match=r"no two files match for en-de; these lack their other side: b\.en\.$"
    ):
        open_readers(f"{tmp_path}/*.{{lang}}", "en-de")
    with pytest.raises(DataError, match=r"\*\.\{lang\}\.gz: no two files match for en-de; its folder holds"):
        open_readers(f"{tmp_path}/*.{{lang}}.gz", "en-de")


def test_two_texts_without_their_other_sides_are_no_pair_beside_a_whole_one(tmp_path):
    write(tmp_path, "part-1.en", "part-1.de", "part-2.en", "part-3.de")
    with pytest.raises(DataError, match=r"these lack their other side: part-2\.en, part-3\.de\.$"):
        open_readers(f"{tmp_path}/part-*.{{lang}}", "en-de")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=NAME)
def test_any_name_is_found_as_it_is_written(tmp_path_factory, name):
    folder = tmp_path_factory.mktemp("names")
    write(folder, f"{name}.tsv", f"{name}.en", f"{name}.de")
    assert names_of(folder, f"{name}.tsv") == [[f"{name}.tsv"]]
    assert names_of(folder, f"{name}.{{lang}}") == [[f"{name}.en", f"{name}.de"]]
