import signal
import subprocess
import sys

import pytest

START = """
import hashlib, os, signal, sys, time
from cyclopts import App
from mnmt_data.cli import console, signals
signals.GRACE_SECONDS = 0.2
app = App(name="tool")
@app.command
def wait():
    try:
        print("ready", flush=True)
        time.sleep(60)
    finally:
        print("cleaned up", flush=True)
@app.command
def compute():
    print("ready", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)  # in C, without the lock of the interpreter
@app.command
def fork():
    if (child := os.fork()) == 0:
        print("ready", flush=True)
        time.sleep(60)
    print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
@app.command
def handle():
    signal.signal(signal.SIGTERM, lambda signum, frame: None)
    print("ready", flush=True)
    for _ in range(8):
        time.sleep(0.1)
    print("done", flush=True)
console.run_app(app, prog="tool")
"""


def start(command, **options):
    arguments = [sys.executable, "-c", START, command]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # Tests in the background may run with SIGINT ignored, which children inherit; they do not a handler.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(arguments, **pipes, **options)
    signal.signal(signal.SIGINT, handler)
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize(
    ("signum", "status", "message"),
    [
        (signal.SIGTERM, 143, "tool: interrupted by SIGTERM\n"),
        (signal.SIGINT, 130, "tool: interrupted\n"),
    ],
)
@pytest.mark.parametrize(("command", "out"), [("wait", "cleaned up\n"), ("compute", "")])
def test_a_signal_ends_a_command_also_within_c(command, out, signum, status, message):
    process = start(command)
    process.send_signal(signum)
    assert process.communicate(timeout=20) == (out, message)
    assert process.returncode == status


def test_a_forked_process_ends_as_usual():
    process = start("fork", start_new_session=True)
    children = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=True
    )
    subprocess.run(["kill", children.stdout.strip()], check=True)
    assert process.communicate(timeout=20) == (f"child {-signal.SIGTERM}\n", "")
    assert process.returncode == 0


def test_a_command_may_handle_a_signal_itself():
    process = start("handle")
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=20) == ("done\n", "")
    assert process.returncode == 0


def test_an_ignored_signal_stays_ignored():
    """As a shell ignores Ctrl-C for commands in the background."""
    with start("wait", preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) as process:
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.terminate()
        assert process.wait(20) == 143
