"""apt with lists and downloads in a folder of its own, and the files inside Debian packages."""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, cast
from urllib.parse import unquote

from tqdm import tqdm

from mnmt_data.errors import DataError

CONFIGURATION = """\
Dir::State::Lists "{folder}/lists";
Dir::Cache "{folder}";
Acquire::GzipIndexes "false";
APT::Sandbox::User "root";
#clear Acquire::Languages;
Acquire::Languages {{ {languages} }};
"""
_TRANSLATION = re.compile(r"/i18n/Translation-([\w@]+)$", flags=re.MULTILINE)


class Apt:
    """apt-get on this machine's package sources, keeping what it fetches in one folder."""

    def __init__(self, folder: Path, *, report: Callable[[str], None]) -> None:
        """Prepare the folder.

        Args:
            folder: Where lists and packages go, and are found again by the next run.
            report: Called with a line at each stage.

        Raises:
            DataError: If it cannot be written.
        """
        self._folder = folder.resolve()
        self.lists = self._folder / "lists"
        self.packages = self._folder / "packages"
        self._configuration = self._folder / "apt.conf"
        self._report = report
        self._unreached = ""
        try:
            for subfolder in (self.lists / "partial", self.packages):
                subfolder.mkdir(parents=True, exist_ok=True)
            self._configure(("none",))
        except OSError as error:
            raise DataError(f"{folder}: {error.strerror}; name a folder that can be written.") from None

    def update(self, *, description_languages: Sequence[str] = ("none",)) -> None:
        """Fetch the lists that have changed.

        A package source that cannot be reached is no error yet, since the others or the lists of an earlier
        run may have what is wanted; if they have not, that error says so.

        Args:
            description_languages: Languages of the package descriptions to fetch as well, `zh_CN`.

        Raises:
            DataError: If this is no Debian system, or apt-get fails.
        """
        self._configure(description_languages)
        output = self._run("apt-get", "-q", "update")
        failures = [line for line in output.splitlines() if line.startswith("W: Failed to fetch")]
        self._unreached = f" ({failures[0]})" if failures else ""
        if failures:
            self._report(f"going on with the lists that could be had{self._unreached}")

    def names(self, prefix: str) -> list[str]:
        """Names of the packages that begin with `prefix`.

        Raises:
            DataError: If there are none.
        """
        names = sorted(self._run("apt-cache", "pkgnames", prefix).split())
        if not names:
            raise DataError(f"apt-get update: no packages {prefix}*.{self._unreached}")
        return names

    def description_languages(self) -> list[str]:
        """Languages that the package sources have package descriptions in.

        Raises:
            DataError: If there are none.
        """
        releases = [path for path in self.lists.iterdir() if path.name.endswith(("_InRelease", "_Release"))]
        contents = (path.read_text(encoding="utf-8", errors="replace") for path in releases)
        languages = {language for content in contents for language in _TRANSLATION.findall(content)}
        if not languages:
            raise DataError(f"apt-get update: no package descriptions.{self._unreached}")
        return sorted(languages)

    def descriptions(self, language: str) -> list[Path]:
        """The lists of package descriptions in a language, one for each package source that has one.

        Raises:
            DataError: If none has.
        """
        lists = self._description_lists(language)
        if not lists:
            raise DataError(f"apt-get update: no package descriptions in {language!r}.{self._unreached}")
        return lists

    def has_descriptions(self, language: str) -> bool:
        """Whether there is a list of package descriptions in a language."""
        return bool(self._description_lists(language))

    def _description_lists(self, language: str) -> list[Path]:
        # apt quotes an underscore in a language as %5f.
        ending = f"_Translation-{language}"
        return sorted(path for path in self.lists.iterdir() if unquote(path.name).endswith(ending))

    def download(self, packages: Sequence[str]) -> list[Path]:
        """Download packages, unless they are there already: apt-get compares size and checksum.

        Returns:
            Their files, in the order asked for.

        Raises:
            DataError: If a package is unknown or cannot be fetched.
        """
        # Asked from a folder without packages, apt-get prints those that are there as well.
        uris = self._run("apt-get", "-q", "download", "--print-uris", *packages, folder=self._folder)
        files = [self.packages / line.split()[1] for line in uris.splitlines() if line.startswith("'")]
        for package in tqdm(packages, desc="download", unit=" packages", disable=None):
            self._run("apt-get", "-q", "download", package)
        named = {file.name.partition("_")[0]: file for file in files}
        return [named[package] for package in packages]

    def _configure(self, description_languages: Sequence[str]) -> None:
        languages = " ".join(f'"{language}";' for language in description_languages)
        content = CONFIGURATION.format(folder=self._folder, languages=languages)
        self._configuration.write_text(content, encoding="utf-8")

    def _run(self, program: str, *arguments: str, folder: Path | None = None) -> str:
        """What a program of apt prints; it downloads into `folder`."""
        command = [program, "-c", str(self._configuration), *arguments]
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        try:
            run = subprocess.run(
                command,
                check=False,
                cwd=folder or self.packages,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        except FileNotFoundError:
            raise DataError(
                f"{program}: no such command; only a Debian system can fetch this corpus."
            ) from None
        if run.returncode:
            verb = next(argument for argument in arguments if not argument.startswith("-"))
            errors = [line for line in run.stdout.splitlines() if line.startswith("E:")]
            raise DataError(f"{program} {verb}: {(errors or ['failed'])[0]}{self._unreached}")
        return run.stdout


def package_version(package: Path) -> str:
    """Version in the name of a package's file, where apt writes a colon as %3a."""
    return package.name.split("_")[1].replace("%3a", ":")


def members(package: Path, path: re.Pattern[str]) -> Iterator[tuple[re.Match[str], bytes]]:
    """`(match, content)` of the package's files where `path` is found in the name, read in one pass.

    Raises:
        DataError: If the package is broken, or this system cannot unpack it.
    """
    command = ["dpkg-deb", "--fsys-tarfile", str(package)]
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except FileNotFoundError:
        raise DataError("dpkg-deb: no such command; only a Debian system can fetch this corpus.") from None
    with process:
        output = cast(IO[bytes], process.stdout)
        try:
            with tarfile.open(fileobj=output, mode="r|") as archive:
                yield from _matching(archive, path)
        except tarfile.TarError as error:
            raise DataError(f"{package}: cannot be unpacked ({error}); delete it and fetch again.") from None
        # What pads the archive; with no reader for it, dpkg-deb would fail.
        output.read()
    if process.returncode:
        raise DataError(f"{package}: cannot be unpacked; delete it and fetch again.")


def _matching(archive: tarfile.TarFile, path: re.Pattern[str]) -> Iterator[tuple[re.Match[str], bytes]]:
    for member in archive:
        if (match := path.search(member.name)) and (file := archive.extractfile(member)):
            yield match, file.read()
