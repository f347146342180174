"""`mnmt-data schema`."""

from __future__ import annotations

import json


def schema() -> None:
    """Print the JSON schema of study files, by which editors complete and check them.

    It has the sections that the installed packages read.
    """
    from mnmt_data.study.schema import study_schema

    print(json.dumps(study_schema(), indent=2, ensure_ascii=False))
