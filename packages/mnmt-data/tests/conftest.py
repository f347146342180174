import sys

import pytest
from hypothesis import settings

from mnmt_data.cli import main

# How long an example takes depends on what else the machine does.
settings.register_profile("mnmt", deadline=None, max_examples=40)
settings.load_profile("mnmt")


@pytest.fixture
def cli(tmp_path, monkeypatch, capsys):
    """Run `mnmt-data ARGUMENTS` in an empty folder: (status, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["mnmt-data", *map(str, arguments)])
        with pytest.raises(SystemExit) as raised:
            main()
        captured = capsys.readouterr()
        return raised.value.code, captured.out, captured.err

    return run
