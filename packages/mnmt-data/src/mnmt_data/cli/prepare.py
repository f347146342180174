"""`mnmt-data prepare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from mnmt_data.cli.console import Jobs
from mnmt_data.cli.progress import ProgressBar, report
from mnmt_data.errors import UserError
from mnmt_data.jobs.cluster import ClusterConfig
from mnmt_data.study import read_study


def prepare(
    study: Path,
    *,
    out: Annotated[Path | None, Parameter(("--out", "-o"))] = None,
    source: Annotated[str | None, Parameter("--from")] = None,
    jobs: Jobs = None,
    cluster: Literal["local", "slurm"] = "local",
    config: Annotated[ClusterConfig, Parameter("*")] = ClusterConfig(),  # noqa: B008 - it is frozen
) -> None:
    """Prepare a study's data, unless they are up to date.

    A stopped `prepare` continues where it was when started again. With `--cluster slurm` other machines do
    the work; they must see the text and the folder of the results.

    Args:
        study: The study's TOML file.
        out: Folder for the study's results; `results/NAME` by default.
        source: URL of a folder of data already prepared from this study; they are fetched and verified.
        jobs: Number of processes; one for each processor by default, and 8 jobs of Slurm.
        cluster: `local` works on this machine, `slurm` in jobs that Slurm schedules.
        config: Resources that a job requests.
    """
    from mnmt_data.cli.inspect import describe, table
    from mnmt_data.prepare import check_prepared, prepare_study
    from mnmt_data.store import fetch_prepared

    if cluster != "slurm" and config != ClusterConfig():
        raise UserError("an option for jobs, such as --minutes, needs --cluster slurm.")
    study_file = read_study(study)
    if unchecked := study_file.unchecked:
        report(f"not checked, since no installed package reads them: {', '.join(unchecked)}")
    folder = out or Path("results") / study_file.name
    if source is not None:
        prepared = fetch_prepared(source, folder / "data")
        check_prepared(study_file, prepared)
    else:
        with ProgressBar("pairs") as progress:
            prepared = prepare_study(
                study_file,
                folder,
                report=report,
                progress=progress,
                jobs=jobs,
                cluster=cluster,
                cluster_config=config,
            )
    print(table(describe(prepared, samples=0)))
    print(f"prepared: {prepared.folder}")
