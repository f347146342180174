"""Machines that share a folder over NFS: Linux kernels in user mode on this one, a server and its clients.

Each has a kernel, a network address and a host name of its own, and sees this machine's files read-only.
They run Debian's packages user-mode-linux and nfs-kernel-server.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = (
    "linux.uml",
    "rpc.nfsd",
    "rpc.mountd",
    "rpc.statd",
    "rpcbind",
    "mount.nfs",
    "ip",
    "modprobe",
    "unshare",
)
SCRIPT = Path(__file__).with_name("nfs_machine.sh")
SHARED = Path("/mnt/shared")
"""Where the machines see the folder."""
OUT = Path("/mnt/out")
"""Where they see the folder `out` of this machine."""
TAP = "transport=tap,ifname=tap{number},depth=64,gro=1"


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended on one machine."""

    status: int
    output: str


def missing_programs() -> list[str]:
    """Return the programs that this machine lacks, or why the machines cannot be started."""
    lacking = [program for program in PROGRAMS if shutil.which(program, path=_search_path()) is None]
    if lacking:
        return lacking
    if os.geteuid() != 0:
        return ["the rights of root"]
    return [] if _runs_programs() else ["a processor whose registers a kernel in user mode can restore"]


def _runs_programs() -> bool:
    """Return whether a kernel in user mode runs a program; older ones cannot where there is Intel's AMX."""
    options = [
        "mem=64M",
        "rootfstype=hostfs",
        "hostfs=/",
        "ro",
        "con=null",
        "con0=null,fd:1",
        "init=/bin/true",
    ]
    kernel = subprocess.run(
        ["linux.uml", *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "PATH": _search_path()}, check=False, timeout=60,
    )  # fmt: skip
    return b"put_fp_registers" not in kernel.stdout


def run_on_machines(
    command: Sequence[str],
    out: Path,
    *,
    clients: int,
    options: str,
    environ: Mapping[str, str],
    seconds: float,
) -> list[Ended]:
    """Run a command on each of some machines that have mounted one folder, and return how it ended on each.

    Args:
        command: The command; the folder is `SHARED`.
        out: An empty folder for logs, which the machines see as `OUT`.
        clients: Number of the machines.
        options: Options of the mount, such as "vers=4.2".
        environ: Environment variables of the command.
        seconds: How long all may take.
    """
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in environ.items())
    (out / "command.sh").write_text(f"{exports}{shlex.join(command)}\n", encoding="utf-8")
    numbers = range(1, clients + 2)
    script = "\n".join([_network(numbers), *(_boot(number, out, options) for number in numbers), "wait"])
    with (out / "kernels.log").open("wb") as log:
        machines = subprocess.Popen(
            ["unshare", "--net", "--kill-child", "--pid", "--fork", "bash", "-c", script],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, "PATH": _search_path()},
        )  # fmt: skip
        try:
            _wait([out / f"status{number}" for number in numbers[1:]], seconds, out)
            (out / "end").touch()
            machines.wait(timeout=30)
        finally:
            machines.kill()
    return [
        Ended(
            status=int((out / f"status{number}").read_text(encoding="utf-8")),
            output=(out / f"output{number}").read_text(encoding="utf-8"),
        )
        for number in numbers[1:]
    ]


def _network(numbers: Sequence[int]) -> str:
    """Return the commands that connect the machines by a bridge, in a network without anything else."""
    lines = ["ip link add bridge0 type bridge", "ip link set bridge0 up"]
    for number in numbers:
        lines += [f"ip tuntap add tap{number} mode tap", f"ip link set tap{number} master bridge0 up"]
    return "\n".join(lines)


def _boot(number: int, out: Path, options: str) -> str:
    """Return the command that starts a machine."""
    arguments = [
        "linux.uml", "rootfstype=hostfs", "hostfs=/", "ro", "mem=1G", "quiet", "con=null", "con0=null,fd:1",
        f"init={SCRIPT}", f"vec0:{TAP.format(number=number)}", f"mnmt_number={number}",
        f"mnmt_out={out.resolve()}", f"mnmt_options={options}", f"uml_dir={out.resolve()}",
        f"umid=machine{number}",
    ]  # fmt: skip
    return f"{shlex.join(arguments)} &"


def _wait(paths: Sequence[Path], seconds: float, out: Path) -> None:
    deadline = time.monotonic() + seconds
    while not all(path.exists() for path in paths):
        if time.monotonic() > deadline:
            logs = "\n".join(
                f"{path.name}:\n{path.read_text(errors='replace')[-1500:]}"
                for path in sorted(out.glob("*.log"))
            )
            raise TimeoutError(f"the machines have not ended after {seconds:g} s\n{logs}")
        time.sleep(0.2)


def _search_path() -> str:
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
