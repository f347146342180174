"""apt with lists and downloads in a folder of its own: needs no root and leaves the system's alone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

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
        self.lists = folder.resolve() / "lists"
        self.packages = folder.resolve() / "packages"
        for subfolder in (self.lists / "partial", self.packages):
            subfolder.mkdir(parents=True, exist_ok=True)
        self._configuration = folder.resolve() / "apt.conf"
        languages = " ".join(f'"{language}";' for language in description_languages)
        content = CONFIGURATION.format(folder=folder.resolve(), languages=languages)
        self._configuration.write_text(content, encoding="utf-8")
        self._unreached = ""

    def update(self) -> None:
        """Fetches the lists that have changed.

        A package source that cannot be reached is no error yet, since the others may have what is wanted; if
        they have not, that error says so.

        Raises:
            DataError: if this is no Debian system, or apt-get fails.
        """
        output = self._run("update")
        failures = [line for line in output.splitlines() if line.startswith("W: Failed to fetch")]
        self._unreached = f" ({failures[0]})" if failures else ""

    def descriptions(self, language: str) -> list[Path]:
        """The lists of package descriptions in a language, one for each package source that has one.

        Raises:
            DataError: if none has.
        """
        # apt quotes an underscore in a language as %5f.
        ending = f"_Translation-{language}"
        lists = sorted(path for path in self.lists.iterdir() if unquote(path.name).endswith(ending))
        if not lists:
            raise DataError(f"apt-get update: no package descriptions in {language!r}.{self._unreached}")
        return lists

    def download(self, packages: Sequence[str]) -> list[Path]:
        """Downloads packages, unless they are there already.

        Returns:
            Their files, in the order asked for.

        Raises:
            DataError: if a package is unknown or cannot be fetched.
        """
        self._run("download", *packages)
        return [max(self.packages.glob(f"{name}_*.deb"), key=os.path.getmtime) for name in packages]

    def _run(self, verb: str, *arguments: str) -> str:
        """What apt-get prints."""
        command = ["apt-get", "-q", "-c", str(self._configuration), verb, *arguments]
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        try:
            run = subprocess.run(
                command,
                check=False,
                cwd=self.packages,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        except FileNotFoundError:
            raise DataError("apt-get: no such command; only a Debian system can fetch this corpus.") from None
        if run.returncode:
            errors = [line for line in run.stdout.splitlines() if line.startswith("E:")]
            raise DataError(f"apt-get {verb}: {(errors or ['failed'])[0]}{self._unreached}")
        return run.stdout
