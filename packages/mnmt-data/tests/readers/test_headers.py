"""Tables with and without headers never give pairs from the wrong columns."""

import re
import tomllib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.readers import ScoreColumn, open_reader, with_scores
from mnmt_data.readers.columns import with_columns

SMALL = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
LAYOUTS = {
    "tatoeba.tsv": ("1276\tLet's try something.\t77\tLassen Sie uns etwas versuchen!", 2, 4),
    "CCMatrix.en-de.tsv": ("1.2454\tHello there.\tHallo du.", 2, 3),
    "WikiMatrix.de-en.tsv": ("1.0712\tHallo du.\tHello there.", 3, 2),
    "ccaligned.tsv": ("ab.com\thttps://ab.com/en/\tHello there.\thttps://ab.com/de/\tHallo du.", 3, 5),
    "paracrawl.tsv": ("http://a.eu/en\thttp://a.eu/de\tHello there.\tHallo du.\t0.71", 3, 4),
    "test.tsv": ("eng\tdeu\tgood morning\tguten Morgen", 3, 4),
    "links.tsv": ("eng\tHello there.\tdeu\tHallo du.", 2, 4),
    "sentences.tsv": ("17\teng\tHello there.\t18\tdeu\tHallo du.", 3, 6),
}


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def pairs(path, task="en-de", columns=None, **options):
    reader = with_columns(open_reader(str(path), task), {path.name: columns} if columns else {})
    return [pair for b in reader.blocks(**options) for pair in zip(b.src, b.tgt, strict=True)]


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_of_mined_text_are_refused_with_the_line_that_reads_them(tmp_path, name):
    line, src, tgt = LAYOUTS[name]
    path = write(tmp_path / name, f"{line}\n{line}\n")
    with pytest.raises(DataError) as raised:
        pairs(path, skip_bad=True)
    what = rf"{re.escape(str(path))}:1: has {line.count(chr(9)) + 1} columns and no header that names en-de; "
    match = re.fullmatch(
        what + r"write (.*) under \[data\], with the numbers of the two columns\.", str(raised.value)
    )
    ((key, columns),) = tomllib.loads(match[1])["columns"].items()
    assert (key, columns) == (name, {"en": src, "de": tgt})
    cells = line.split("\t")
    assert pairs(path, columns=columns) == 2 * [(cells[src - 1], cells[tgt - 1])]
    assert pairs(path, "de-en", columns) == 2 * [(cells[tgt - 1], cells[src - 1])]


@pytest.mark.parametrize(
    ("name", "task", "pair"),
    [
        ("x.tsv", "en-de", ("a", "A")),
        ("x.de-en.tsv", "en-de", ("A", "a")),
        ("x.en-de.tsv", "de-en", ("A", "a")),
        ("x.en-de.tsv", "en-de", ("a", "A")),
    ],
)
@pytest.mark.parametrize("column", [1, 2, 3])
def test_the_two_columns_beside_a_numbered_score_are_the_sides(tmp_path, name, task, pair, column):
    cells = ["a", "A"]
    cells.insert(column - 1, "1.06")
    path = write(tmp_path / name, "\t".join(cells) + "\n")
    scores = [ScoreColumn(name="laser", column=column)]
    (block,) = with_scores(open_reader(str(path), task), scores).blocks()
    assert (block.src, block.tgt) == ([pair[0]], [pair[1]])
    assert block.scores["laser"].tolist() == pytest.approx([1.06])


CELL = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=2, max_size=6).map(
    lambda text: f"{text} ."
)


@SMALL
@given(st.data(), st.integers(1, 6), st.sampled_from(["x.tsv", "x.de-en.tsv"]))
def test_a_table_never_gives_pairs_from_other_columns(tmp_path, data, width, name):
    rows = data.draw(st.lists(st.lists(CELL, min_size=width, max_size=width), min_size=1, max_size=5))
    path = write(tmp_path / name, "".join("\t".join(row) + "\n" for row in rows))
    if width == 2:
        order = (1, 0) if name == "x.de-en.tsv" else (0, 1)
        assert pairs(path) == [(row[order[0]], row[order[1]]) for row in rows]
    else:
        with pytest.raises(DataError, match=rf":1: has {width} columns? "):
            pairs(path, skip_bad=True)
    if width > 1:
        src, tgt = data.draw(st.lists(st.integers(1, width), min_size=2, max_size=2, unique=True))
        named = [(row[src - 1], row[tgt - 1]) for row in rows]
        assert pairs(path, columns={"en": src, "de": tgt}) == named
        assert pairs(path, columns={"deu_Latn": tgt, "eng": src}) == named
        header = "\t".join(f"text {number}" for number in range(1, width + 1))
        write(path, header + "\n" + path.read_text(encoding="utf-8"))
        assert pairs(path, columns={"en": f"text {src}", "de": f"text {tgt}"}) == named


@SMALL
@given(st.lists(st.integers(1, 4), min_size=2, max_size=8))
def test_a_stray_tab_never_cuts_a_sentence(tmp_path, widths):
    widths[0] = 2
    lines = ["\t".join(f"{row} {cell}" for cell in range(width)) for row, width in enumerate(widths)]
    path = write(tmp_path / "x.tsv", "".join(f"{line}\n" for line in lines))
    (block,) = open_reader(str(path), "en-de").blocks(skip_bad=True)
    assert [line.row for line in block.bad] == [row for row, width in enumerate(widths) if width != 2]
    assert list(zip(block.src, block.tgt, strict=True)) == [
        (f"{row} 0", f"{row} 1") if width == 2 else ("", "") for row, width in enumerate(widths)
    ]
    for line in block.bad:
        count = f"{widths[line.row]} column{'s' * (widths[line.row] > 1)}"
        assert line.what.startswith(f"{path}:{line.row + 1}: has {count}, but the first line has 2; ")


def test_quotes_of_tsv_are_text(tmp_path):
    lines = ['"Open\tOffen', "b\tB", '"c"\t"C', '""\t"']
    path = write(tmp_path / "x.tsv", "".join(f"{line}\n" for line in lines))
    assert pairs(path) == [tuple(line.split("\t")) for line in lines]


@pytest.mark.parametrize(
    ("header", "task", "pair"),
    [
        ("eng_Latn\tarb_Arab\tnob_Latn\tpes_Arab", "en-ar", (0, 1)),
        ("eng_Latn\tarb_Arab\tnob_Latn\tpes_Arab", "en-no", (0, 2)),
        ("eng_Latn\tarb_Arab\tnob_Latn\tpes_Arab", "fa-en", (3, 0)),
        ("ger\tfre\tgre\tchi", "fr-zh", (1, 3)),
        ("id\teng\tmlt\tnote", "en-mt", (1, 2)),
    ],
)
@pytest.mark.parametrize("separator", ["\t", ","])
def test_headers_of_codes(tmp_path, header, task, pair, separator):
    lines = f"{header}\na\tb\tc\td\n".replace("\t", separator)
    path = write(tmp_path / ("x.csv" if separator == "," else "x.tsv"), lines)
    assert pairs(path, task) == [("abcd"[pair[0]], "abcd"[pair[1]])]


@pytest.mark.parametrize(
    ("header", "task", "message"),
    [
        ("eng_Latn\tzho_Hans\tzho_Hant", "en-zh", "zh may be zho_Hans or zho_Hant; write in the task which"),
        ("nno\tnob\teng", "en-no", "no may be nno or nob; write in the task which, such as en-nno"),
        (
            "eng_Latn\tarb_Arab",
            "en-sw",
            "seems to be a header with no columns for en-sw among eng_",
        ),
        ("en\tde\ten", "en-de", "has several columns en; keep one of them"),
        ("src\ttgt\ttgt", "en-de", "has several columns tgt; keep one of them"),
        ("nob_Latn\teng", "no-nb", "seems to be a header with no columns for no-nb"),
    ],
)
def test_headers_that_do_not_say_which_column_are_refused(tmp_path, header, task, message):
    path = write(tmp_path / "x.tsv", f"{header}\na\tb\tc\n")
    with pytest.raises(DataError, match=re.escape(message)):
        pairs(path, task)


def test_a_line_with_its_languages_is_no_header(tmp_path):
    path = write(tmp_path / "x.tsv", "en\tde\tmorning\tMorgen\nen\tfr\tmorning\tmatin\n")
    with pytest.raises(DataError, match="has 4 columns and no header"):
        pairs(path)
    path = write(tmp_path / "y.tsv", "en\tde\nmorning\tMorgen\n")
    assert pairs(path) == [("morning", "Morgen")]


def test_a_header_is_no_pair_where_the_study_numbers_columns(tmp_path):
    path = write(tmp_path / "x.tsv", "score\tsentence1\tsentence2\n1\ta\tA\n")
    columns = {"en": 2, "de": 3}
    assert pairs(path, columns=columns) == [("a", "A")]
    reader = with_columns(open_reader(str(path), "en-de"), {"x.tsv": columns})
    (block,) = with_scores(reader, [ScoreColumn(name="score", column="score")]).blocks()
    assert block.scores["score"].tolist() == [1]


@pytest.mark.parametrize("label", ["{}", "https://a.org/{}", "deu"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_column_without_sentences_is_no_side(tmp_path, label, place):
    texts = enumerate(("Hello there.", "Hello again."))
    rows = [[label.format(number), text][:: -1 if place else 1] for number, text in texts]
    path = write(tmp_path / "x.tsv", "".join("\t".join(row) + "\n" for row in rows))
    what = rf"x\.tsv:1: has 2 columns and no header .*, and column {place + 1} has only numbers, addresses or"
    with pytest.raises(DataError, match=what + r" codes; write columns\.\"x\.tsv\" = \{ en = 1, de = 2 \}"):
        pairs(path, skip_bad=True)
    assert len(pairs(path, columns={"en": 1, "de": 2})) == 2


def test_lists_of_words_may_look_like_codes(tmp_path):
    path = write(tmp_path / "x.tsv", "the\tdie\nthe\tder\nand\tund\nwas\twar\n")
    assert len(pairs(path)) == 4


def test_an_unknown_header_above_numbered_columns_is_no_pair(tmp_path, caplog):
    columns, text = {"en": 2, "de": 3}, "1\tHello there.\tHallo du.\n2\tgood morning\tguten Morgen\n"
    path = write(tmp_path / "x.tsv", "nr\ttexta\ttextb\n" + text)
    for _ in range(2):
        assert pairs(path, columns=columns)[0] == ("Hello there.", "Hallo du.")
    assert caplog.messages == [f"{path}: the first line is taken for names of columns: nr, texta, textb"]
    for first in ("0\ttexta\ttextb", "nr\tIntroduction\tEinleitung", "nr\tone two\teins zwei"):
        write(path, f"{first}\n{text}")
        assert len(pairs(path, columns=columns)) == 3


@pytest.mark.parametrize(("name", "mark"), [("x.csv", "a comma"), ("x.tsv", "a tab")])
def test_one_column_is_told_the_separator(tmp_path, name, mark):
    path = write(tmp_path / name, "en;de\na;b\n")
    with pytest.raises(DataError, match=f"has 1 column and no second side; put {mark} between columns"):
        pairs(path)


def test_a_csv_file_needs_a_header_or_numbers(tmp_path):
    path = write(tmp_path / "x.csv", 'Hello there.,"Hallo, du."\n')
    with pytest.raises(DataError, match=r"x\.csv:1: has 2 columns and no header that names en-de"):
        pairs(path)
    assert pairs(path, columns={"en": 1, "de": 2}) == [("Hello there.", "Hallo, du.")]


def test_an_unclosed_quote_of_csv_is_named_where_it_opens(tmp_path):
    path = write(tmp_path / "x.csv", 'en,de\na,A\n"b,B\nc,C\n')
    with pytest.raises(DataError, match=r"x\.csv:3: not CSV"):
        pairs(path, skip_bad=True)


@pytest.mark.parametrize("columns", [{"en": "text", "de": "text_de"}, {"src": "text", "tgt": "text_de"}])
def test_json_and_parquet_have_columns_of_other_names(tmp_path, columns):
    rows = [{"text": "a", "text_de": "A", "de": "x"}]
    path = write(tmp_path / "x.jsonl", "".join(f"{row}\n".replace("'", '"') for row in rows))
    assert pairs(path, columns=columns) == [("a", "A")]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet")
    assert pairs(tmp_path / "x.parquet", columns=columns) == [("a", "A")]
    with pytest.raises(
        DataError, match=r"x\.jsonl:1: \[data\.columns\] must name a key for en, but has the number 1"
    ):
        pairs(path, columns={"en": 1, "de": 2})
    for broken in (path, tmp_path / "x.parquet"):
        with pytest.raises(DataError, match=r"no column other among text, text_de, de; mend \[data"):
            pairs(broken, columns={"en": "other", "de": "text_de"})


def test_patterns_of_a_study_name_tables(tmp_path):
    names = {"*": {"en": 1, "de": 2}, "CC*.tsv": {"en": 2, "de": 1}}
    for name, pair in (("CC [1].tsv", ("A", "a")), ("x.tsv", ("a", "A"))):
        reader = with_columns(open_reader(str(write(tmp_path / name, "a\tA\n")), "en-de"), names)
        (block,) = reader.blocks()
        assert (*block.src, *block.tgt) == pair
    reader = open_reader(str(tmp_path / "CC [1].tsv"), "en-de")
    assert reader.is_named("CC [1].tsv")
