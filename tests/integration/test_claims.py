"""The page of claims says what its rows say, and what is wrong with a row is named."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = "docs/studies/splitting/unrelated.csv"


@pytest.fixture
def claims(analysis):
    return analysis("claims")


@pytest.fixture
def problems_after(claims, tmp_path):
    def change(before, after):
        text = claims.CLAIMS.read_text(encoding="utf-8")
        assert before in text
        changed = tmp_path / "claims.toml"
        changed.write_text(text.replace(before, after, 1), encoding="utf-8")
        return list(claims.problems(claims.read_claims(changed)))

    return change


def test_the_page_and_its_rows_are_as_they_should_be(claims, capsys):
    assert claims.main(["--check"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('verdict = "seen"', 'verdict = "true"', "`verdict` must be one of seen, not seen, .* but is 'true'"),
        ('id = "Fig. 20"', 'id = "Fig. 2 again"', "fernandes: no row is about Fig. 20"),
        ("equations = 13", "equations = 14", "fernandes: no row is about Eq. 14"),
        ('id = "Fig. 20"', 'id = "Fig. 19"', "fernandes, Fig. 19: must be one row, but is 2"),
        (TABLE, "docs/studies/nowhere.csv", "docs/studies/nowhere.csv must exist"),
        ("limits.md#training-length", "limits.md#no-heading", "limits.md#no-heading must exist"),
        ("::test_effective_size", "::test_no_size", "`test` must be FILE::FUNCTION"),
        ("mnmt_laws.effective_size", "mnmt_laws.no_size", "`function` must be a name of a package"),
        ("mnmt_laws.effective_size", "os.path.join", "`function` must be a name of a package"),
        ("mnmt_laws.effective_size", "mnmt_laws.fitting", "`function` must be a name of a package"),
        (
            "mnmt_laws.effective_size",
            "mnmt_laws.fitting.fit._same_length",
            "`function` must be a name of a package",
        ),
        ('evidence = ["splitting", ', 'evidence = ["nothing", ', "'nothing' must be a table"),
    ],
)
def test_what_is_wrong_is_named(problems_after, before, after, message):
    problems = problems_after(before, after)
    assert any(re.search(message, problem) for problem in problems), problems


def test_a_key_that_means_nothing_is_refused(claims, tmp_path):
    changed = tmp_path / "claims.toml"
    changed.write_text('[papers.a]\ntitle = "A"\npages = 3\n[evidence]\n[[claims]]\n', encoding="utf-8")
    with pytest.raises(claims.ClaimsError, match="`pages` must be one of title, figures, equations"):
        claims.read_claims(changed)


def test_a_run_table_without_fingerprints_is_named(claims, tmp_path):
    (tmp_path / "runs.csv").write_text(
        "run,data_fingerprint,config_fingerprint\na,1,2\nb,1,\n", encoding="utf-8"
    )
    (tmp_path / "numbers.csv").write_text("weight,loss\n.5,3\n", encoding="utf-8")
    assert [line[:19] for line in claims.tables_without_fingerprints(tmp_path)] == ["runs.csv: 1 rows ha"]
