"""apt with lists and downloads in a folder of its own: needs no root and leaves the system's alone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from mnmt_data.errors import DataError

CONFIGURATION = """\
Dir::State::Lists "{folder}/lists";
Dir::Cache "{folder}";
Acquire::GzipIndexes "false";
APT::Sandbox::User "root";
#clear Acquire::Languages;
Acquire::Languages {{ {languages} }};
"""


class Apt:
    """apt-get on this machine's package sources, keeping what it fetches in one folder."""

    def __init__(self, folder: Path, *, description_languages: Sequence[str] = ("none",)) -> None:
        """Prepares the folder.

        Args:
            folder: where lists and packages go, and are found again by the next run.
            description_languages: languages of the package descriptions that `update` fetches, `zh_CN`.
        """
        self.folder = folder.resolve()
        self.lists = self.folder / "lists"
        self.packages = self.folder / "packages"
        for subfolder in (self.lists / "partial", self.folder / "archives" / "partial", self.packages):
            subfolder.mkdir(parents=True, exist_ok=True)
        self._configuration = self.folder / "apt.conf"
        languages = " ".join(f'"{language}";' for language in description_languages)
        self._configuration.write_text(
            CONFIGURATION.format(folder=self.folder, languages=languages), encoding="utf-8"
        )
        self._failure = ""

    def update(self) -> None:
        """Fetches the lists that have changed.

        A source that cannot be reached is no error yet, since others may have what is wanted: if nothing has, its
        message is part of the later one.

        Raises:
            DataError: if this is no Debian system, or apt-get fails.
        """
        output = self._run("update")
        failures = [line for line in output.splitlines() if line.startswith("W: Failed to fetch")]
        self._failure = f" ({failures[0]})" if failures else ""

    def index(self, name: str) -> list[Path]:
        """The lists whose file names end in `name`, such as ``_Translation-de``, one for each package source.

        Raises:
            DataError: if there is none.
        """
        # apt writes an underscore that is not a separator as %5f.
        found = sorted(self.lists.glob(f"*{name}"))
        if not found:
            raise DataError(f"{self.lists}: no list *{name}; does the archive have it?{self._failure}")
        return found

    def download(self, packages: Sequence[str]) -> list[Path]:
        """Downloads packages into the folder, unless they are there.

        Returns:
            Their files, in the order asked for.

        Raises:
            DataError: if a package is unknown or cannot be fetched.
        """
        self._run("download", *packages)
        return [max(self.packages.glob(f"{name}_*.deb"), key=lambda p: p.stat().st_mtime) for name in packages]

    def _run(self, verb: str, *arguments: str) -> str:
        try:
            run = subprocess.run(
                ["apt-get", "-q", "-c", str(self._configuration), verb, *arguments],
                cwd=self.packages,
                env={**os.environ, "LC_ALL": "C.UTF-8"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        except FileNotFoundError:
            raise DataError("apt-get: no such command; this corpus comes from a Debian system's packages.") from None
        if run.returncode:
            errors = [line for line in run.stdout.splitlines() if line.startswith("E:")]
            raise DataError(f"apt-get {verb}: {(errors or ['failed'])[0]}{self._failure}")
        return run.stdout
