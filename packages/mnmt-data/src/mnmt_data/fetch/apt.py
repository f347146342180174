"""Run apt with its lists and downloads in a separate folder, and read the files in Debian packages."""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from lzma import LZMAError
from pathlib import Path
from urllib.parse import unquote

from debian.arfile import ArError
from debian.debfile import DebError, DebFile

from mnmt_data.errors import DataError

CONFIGURATION = """\
Dir::State::Lists "{folder}/lists";
Dir::Cache "{folder}";
Acquire::GzipIndexes "false";
APT::Sandbox::User "root";
#clear Acquire::Languages;
Acquire::Languages {{ {languages} }};
"""
Report = Callable[[str], None]
"""Called with a line about the work."""

Progress = Callable[[str, int], None]
"""Called with the name of a stage and the number of files just done."""

_TRANSLATION = re.compile(r"/i18n/Translation-([\w@]+)$", flags=re.MULTILINE)


class Apt:
    """Runs apt-get on this machine's package sources, and keeps its files in one folder."""

    def __init__(
        self, folder: Path, *, report: Report, progress: Progress = lambda stage, files: None
    ) -> None:
        """Prepare the folder.

        Args:
            folder: Folder of lists and packages, reused by the next run.
            report: Called with a line at each stage.
            progress: Called with the name of a stage and the number of files that it has just done.

        Raises:
            DataError: If the folder cannot be written.
        """
        self._folder = folder.resolve()
        self.lists = self._folder / "lists"
        self.packages = self._folder / "packages"
        self._configuration = self._folder / "apt.conf"
        self._report = report
        self._progress = progress
        self._unreachable = ""
        try:
            for subfolder in (self.lists / "partial", self.packages):
                subfolder.mkdir(parents=True, exist_ok=True)
            self._configure(("none",))
        except OSError as error:
            raise DataError(f"{folder}: {error.strerror}; name a folder that can be written.") from None

    def update(self, *, description_languages: Sequence[str] = ("none",)) -> None:
        """Fetch the lists that have changed.

        An unreachable package source is no error yet: the other sources, or the lists of an earlier run, may
        have the packages. Otherwise the error about a missing package mentions the source.

        Args:
            description_languages: Languages of the package descriptions to fetch as well, `zh_CN`.

        Raises:
            DataError: If this is not a Debian system, or apt-get fails.
        """
        self._configure(description_languages)
        output = self._run("apt-get", "-q", "update")
        failures = [line for line in output.splitlines() if line.startswith("W: Failed to fetch")]
        self._unreachable = f" ({failures[0]})" if failures else ""
        if failures:
            self._report(f"continuing with the other lists{self._unreachable}")

    def names(self, prefix: str) -> list[str]:
        """Return the names of the packages that begin with `prefix`.

        Raises:
            DataError: If there is no such package.
        """
        names = sorted(self._run("apt-cache", "pkgnames", prefix).split())
        if not names:
            raise DataError(f"apt-get update: no packages {prefix}*.{self._unreachable}")
        return names

    def description_languages(self) -> list[str]:
        """Return the languages in which the package sources have package descriptions.

        Raises:
            DataError: If there is no such language.
        """
        releases = [path for path in self.lists.iterdir() if path.name.endswith(("_InRelease", "_Release"))]
        contents = (path.read_text(encoding="utf-8", errors="replace") for path in releases)
        languages = {language for content in contents for language in _TRANSLATION.findall(content)}
        if not languages:
            raise DataError(f"apt-get update: no package descriptions.{self._unreachable}")
        return sorted(languages)

    def descriptions(self, language: str) -> list[Path]:
        """Return the lists of package descriptions in a language, at most one for each package source.

        Raises:
            DataError: If there is no such list.
        """
        lists = self._description_lists(language)
        if not lists:
            raise DataError(f"apt-get update: no package descriptions in {language!r}.{self._unreachable}")
        return lists

    def has_descriptions(self, language: str) -> bool:
        """Return whether there is a list of package descriptions in a language."""
        return bool(self._description_lists(language))

    def _description_lists(self, language: str) -> list[Path]:
        # apt quotes an underscore in a language as %5f.
        ending = f"_Translation-{language}"
        return sorted(path for path in self.lists.iterdir() if unquote(path.name).endswith(ending))

    def download(self, packages: Sequence[str]) -> list[Path]:
        """Download packages unless they are up to date: apt-get compares size and checksum.

        Returns:
            Their files, in the same order.

        Raises:
            DataError: If a package is unknown or cannot be fetched.
        """
        files = self.files(packages)
        for package in packages:
            self._run("apt-get", "-q", "download", package)
            self._progress("download", 1)
        return files

    def files(self, packages: Sequence[str]) -> list[Path]:
        """Return the paths of the files of packages, in the same order, downloaded or not.

        Raises:
            DataError: If a package is unknown.
        """
        # apt-get leaves out packages that lie in the current folder, so ask from another one.
        uris = self._run("apt-get", "-q", "download", "--print-uris", *packages, folder=self._folder)
        files = [self.packages / line.split()[1] for line in uris.splitlines() if line.startswith("'")]
        named = {file.name.partition("_")[0]: file for file in files}
        return [named[package] for package in packages]

    def _configure(self, description_languages: Sequence[str]) -> None:
        languages = " ".join(f'"{language}";' for language in description_languages)
        content = CONFIGURATION.format(folder=self._folder, languages=languages)
        self._configuration.write_text(content, encoding="utf-8")

    def _run(self, program: str, *arguments: str, folder: Path | None = None) -> str:
        """Run a program of apt, which downloads into `folder`, and return its output."""
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
            raise DataError(f"{program} {verb}: {(errors or ['failed'])[0]}{self._unreachable}")
        return run.stdout


def package_version(package: Path) -> str:
    """Return the version in the name of a package's file, where apt writes a colon as %3a."""
    return package.name.split("_")[1].replace("%3a", ":")


def members(package: Path, path: re.Pattern[str]) -> Iterator[tuple[re.Match[str], bytes]]:
    """Yield `(match, content)` of the package's files whose name matches `path`, in one pass.

    Links are skipped.

    Raises:
        DataError: If the package is broken.
    """
    for match, member, content in _entries(package, path):
        if member.isreg():
            yield match, content


def link_target(package: Path, path: re.Pattern[str]) -> str | None:
    """Return the target of the first symbolic link in a package whose name matches `path`, or None.

    Raises:
        DataError: If the package is broken.
    """
    for _, member, _ in _entries(package, path):
        if member.issym():
            return member.linkname
    return None


def _entries(package: Path, path: re.Pattern[str]) -> Iterator[tuple[re.Match[str], tarfile.TarInfo, bytes]]:
    """Yield the members of a package whose names match `path`, with the content of regular files."""
    try:
        with closing(DebFile(package)) as deb:
            archive = deb.data.tgz()
            for member in archive:
                if match := path.search(member.name):
                    file = archive.extractfile(member) if member.isreg() else None
                    yield match, member, file.read() if file else b""
    except (DebError, ArError, tarfile.TarError, EOFError, OSError, LZMAError, zlib.error) as error:
        raise DataError(f"{package}: cannot be unpacked ({error}); delete it and fetch again.") from None
