import gzip

import pytest

from mnmt_data.errors import DataError
from mnmt_data.readers import find_readers, open_reader


def write(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n", encoding="utf-8")


def sides(reader):
    (block,) = reader.blocks()
    return block.src + block.tgt


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("x.{lang}", ["x.en", "x.de"]),
        ("x.{lang}.txt", ["x.en.txt", "x.de.txt"]),
        ("{lang}/x.{lang}", ["en/x.en", "de/x.de"]),
        ("x.{lang}", ["x.eng", "x.deu"]),
        ("x.{id}.{lang}", ["x.{id}.en", "x.{id}.de"]),
        ("X.de-en.{lang}", ["X.de-en.en", "X.de-en.de"]),
        ("dev/{lang}.dev", ["dev/eng_Latn.dev", "dev/deu_Latn.dev"]),
        ("{lang}/[1]*.{lang}", ["en_GB/[1]*.en_GB", "ger/[1]*.ger"]),
    ],
)
def test_lang_stands_for_each_code(tmp_path, pattern, files):
    write(tmp_path, *files)
    assert sides(open_reader(f"{tmp_path}/{pattern}", "en-de")) == files
    assert sides(open_reader(f"{tmp_path}/{pattern}", "de-en")) == files[::-1]


def test_individual_languages_are_found_and_equal_ones_asked_about(tmp_path):
    write(tmp_path, "eng_Latn.dev", "arb_Arab.dev", "zho_Hans.dev", "zho_Hant.dev", "nob_Latn.dev")
    pattern = f"{tmp_path}/{{lang}}.dev"
    assert sides(open_reader(pattern, "ar-en")) == ["arb_Arab.dev", "eng_Latn.dev"]
    assert sides(open_reader(pattern, "en-zh_Hant")) == ["eng_Latn.dev", "zho_Hant.dev"]
    with pytest.raises(DataError, match=r"zh may be zho_Hans or zho_Hant; .*, such as en-zho_Hans\.$"):
        open_reader(pattern, "en-zh")
    with pytest.raises(DataError, match="one text serves both languages of no-nb; give two"):
        open_reader(pattern, "no-nb")


def test_the_home_folder_may_be_named(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path, "x.en", "x.de")
    assert open_reader("~/x.{lang}", "en-de").paths == (tmp_path / "x.en", tmp_path / "x.de")


def test_a_missing_side_is_named(tmp_path):
    write(tmp_path, "x.en")
    with pytest.raises(DataError) as error:
        open_reader(f"{tmp_path}/x.{{lang}}", "en-de")
    what = "no such file; its folder holds x.en."
    assert str(error.value) == f"{tmp_path}/x.de: {what}"


@pytest.mark.parametrize("name", ["x.tsv", "x.tsv.gz", "x.tmx", "x.zip", "x.parquet", "x.unknown"])
def test_a_missing_file_is_named(tmp_path, name):
    with pytest.raises(DataError) as error:
        open_reader(str(tmp_path / name), "en-de")
    what = "no such file; its folder is empty."
    assert str(error.value) == f"{tmp_path / name}: {what}"


def test_what_stands_in_the_folder_is_named(tmp_path):
    write(tmp_path, *(f"part{number}.tsv" for number in range(8)), "europarl.tsv", ".hidden")
    with pytest.raises(DataError, match=r"its folder holds europarl\.tsv, .* and 3 more\.$"):
        open_reader(str(tmp_path / "europarl-.tsv"), "en-de")
    with pytest.raises(DataError, match=r"holds europarl\.tsv, part0\.tsv, .*, part4\.tsv and 3 more\.$"):
        open_reader(str(tmp_path / "quite other"), "en-de")
    with pytest.raises(DataError, match=rf"there is no folder {tmp_path}/none\.$"):
        open_reader(str(tmp_path / "none/x.tsv"), "en-de")


@pytest.mark.parametrize("name", ["x.en", "x.json", "x.xz", "x.xml", "tsv"])
def test_an_unknown_format_lists_the_known_ones(tmp_path, name):
    write(tmp_path, name)
    with pytest.raises(DataError) as error:
        open_reader(str(tmp_path / name), "en-de")
    assert str(error.value) == (
        f"{tmp_path / name}: unknown format; the name must end in one of .tsv, .csv, .jsonl, .tmx, "
        ".xlf, .xliff, .sdlxliff, .mqxliff, .mxliff (.gz, .zst, .xz, .bz2 may follow), "
        ".po, .zip, .parquet, or have {lang} for two texts."
    )


@pytest.mark.parametrize("names", [("dev.en-de.en.sgm.gz", "dev.en-de.de"), ("dev.en-de.xml",)])
def test_wmts_mark_up_is_found_by_its_name_and_refused(tmp_path, names):
    for name in names:
        content = b'<?xml version="1.0"?>\n<dataset id="n">\n'
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with pytest.raises(DataError) as error:
        list(find_readers(tmp_path, "dev", "en-de")[0].blocks())
    assert str(error.value) == (
        f'{tmp_path / names[0]}: is WMT\'s mark-up (<dataset id="n"), not a sentence a line; give text, as '
        "`sacrebleu -t wmt19 -l en-de --echo src` writes it, or `ref`, or `docid`."
    )


@pytest.mark.parametrize("name", ["x.tsv", "x.{lang}"])
def test_the_home_of_nobody_is_one_line(name):
    with pytest.raises(DataError, match=r"~nobody-of-this-name/x\.\S+: no such user; write the path in full"):
        open_reader(f"~nobody-of-this-name/{name}", "en-de")


@pytest.mark.parametrize("task", ["en", "en-", "-de", "en-de-fr", ""])
def test_a_task_is_two_codes(task):
    with pytest.raises(ValueError, match="`task` must be SRC-TGT"):
        open_reader("x.{lang}", task)


def test_a_file_that_is_there_packed_and_unpacked_is_read_by_neither(tmp_path):
    write(tmp_path, "test.en-de.tsv", "test.en-de.tsv.xz")
    with pytest.raises(DataError, match=r"test\.en-de\.tsv: test\.en-de\.tsv\.xz is there as well; keep one"):
        find_readers(tmp_path, "test", "en-de")
