"""Install sizes: megabytes and distributions that pip brings into an empty environment.

Each package is installed from its folder into a new environment, which is removed afterwards. Compiled
bytecode counts, as pip writes it; pip itself, which every environment has, counts apart.

    python -m benchmarks.install_size --out benchmarks/results/install_size.json
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measurement import PACKAGES, Figures, Names, Out, print_table, provenance, run, write_report

LARGEST = 5  # distributions that are named


def main(*, packages: Names = ("mnmt-laws", "mnmt-data mnmt-eval"), out: Out = None) -> None:
    """Print the size of each package with all that it requires.

    Args:
        packages: Packages to install, or several in one environment, with spaces between them.
        out: JSON file for the figures.
    """
    rows = [measure(package) for package in packages]
    print_table(rows)
    write_report(out, "install sizes", {"results": rows}, provenance("mnmt-laws", "mnmt-eval", "mnmt-data"))


def measure(package: str) -> Figures:
    """Install a package into a new environment, and return its size in MB."""
    with TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        (site,) = Path(folder).glob("lib/python*/site-packages")
        empty, distributions = megabytes(site), names(site)
        python = Path(folder) / "bin" / "python"
        quiet = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        subprocess.run(
            [
                python,
                *quiet,
                "--constraint",
                PACKAGES.parent / "constraints.txt",
                *(PACKAGES / name for name in package.split()),
            ],
            check=True,
        )
        sizes = sorted(((megabytes(path), path.name) for path in site.iterdir()), reverse=True)
        return {
            "package": package,
            "mb": round(megabytes(site) - empty),
            "distributions": len(names(site)) - len(distributions),
            "pip_mb": round(empty),
            "largest": ", ".join(f"{path} {size:.0f}" for size, path in sizes[:LARGEST]),
        }


def megabytes(path: Path) -> float:
    """Return the size of a file or of all files of a folder, in MB of 1,000,000 bytes."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file() and not file.is_symlink()) / 1e6


def names(site: Path) -> set[str]:
    """Return the distributions of a folder of packages."""
    return {path.name for path in site.glob("*.dist-info")}


if __name__ == "__main__":
    run(main, smoke={"packages": ()})
