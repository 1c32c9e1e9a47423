"""Makes .venv with the pinned packages, then runs a module of this package in it.

Run by front.sh with any Python from 3.12 on; only the standard library is there yet.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1]
CLONE = SCRIPT.parent
VENV = CLONE / ".venv"
PYTHON = VENV / "bin" / "python"
INSTALLED = VENV / ".installed"
DEVELOPED = VENV / ".installed-dev"
UV = SCRIPT / "local" / "uv.txt"
RUNS = CLONE / "requirements.txt"
DEVELOPS = CLONE / "requirements-dev.txt"
NEEDS_DEVELOPMENT = {"test", "lint", "fix", "bench", "screenshots"}
# Where systems keep what they trust in one file; behind a network with an authority of its own
# only this has it. uv is told to ask the system; pip before 24.2 knows its own list only.
BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"


def stamp_of(requirements: Sequence[Path]) -> str:
    """What a finished installation of these files is known by."""
    digest = hashlib.sha256()
    for file in requirements:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def installed(requirements: Sequence[Path], stamp_file: Path) -> bool:
    """Whether .venv holds exactly these."""
    try:
        return PYTHON.exists() and stamp_file.read_text().strip() == stamp_of(requirements)
    except OSError:
        return False


def complete(development: bool) -> bool:
    """Whether .venv has all that is needed; what developers have is more than what runs it."""
    return installed([RUNS, DEVELOPS], DEVELOPED) or (
        not development and installed([RUNS], INSTALLED)
    )


def install(development: bool) -> None:
    """Make .venv and put the pinned packages into it, unless they are there."""
    if complete(development):
        return
    requirements = [RUNS, DEVELOPS] if development else [RUNS]
    started = time.monotonic()
    sys.stderr.write("  Python packages (the first time may take a minute) ...\n")
    if not works(PYTHON, "-c", "import sys; sys.exit(sys.version_info < (3, 12))"):
        call([sys.executable, "-m", "venv", "--clear", str(VENV)], "make .venv")
    if not works(VENV / "bin" / "uv", "--version"):
        fetch_uv()
    files = [argument for file in requirements for argument in ("-r", str(file))]
    call(
        [
            *(str(VENV / "bin" / "uv"), "pip", "install", "--quiet", "--python", str(PYTHON)),
            *("--require-hashes", *files),
        ],
        "install the packages",
    )
    (DEVELOPED if development else INSTALLED).write_text(stamp_of(requirements) + "\n")
    sys.stderr.write(f"  Python packages installed in {time.monotonic() - started:.1f} s\n")


def fetch_uv() -> None:
    """Have pip install uv; where it trusts nobody on the way, with what the system trusts."""
    command = [
        *(str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
        *("--require-hashes", "-r", str(UV)),
    ]
    done = run(command)
    bundle = next((file for file in BUNDLES if os.path.exists(file)), "")
    if done.returncode and bundle and UNTRUSTED in done.stdout + done.stderr:
        done = run([*command, "--cert", bundle])
    check(done, "fetch uv")


def works(program: Path, *arguments: str) -> bool:
    """Whether this program runs, and well: in a moved or half-made .venv some do not."""
    try:
        return subprocess.run([program, *arguments], capture_output=True).returncode == 0
    except OSError:
        return False


def call(command: list[str], purpose: str) -> None:
    """Run a command to its end, or leave with its last words and one clear sentence."""
    check(run(command), purpose)


def run(command: list[str]) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end, with what it says kept."""
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def check(done: "subprocess.CompletedProcess[str]", purpose: str) -> None:
    """Leave with the last words and one clear sentence if this failed."""
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-12:]
        if any("No space left" in line for line in said):
            sys.exit(f"The disk that holds {CLONE} is full: free some space, then start again.")
        sys.stderr.write("\n".join(said) + "\n")
        sys.exit(f"Could not {purpose}: see above. Is there a network? Then start again.")


def main() -> None:
    """Install, then become the module that was asked for."""
    module, arguments = sys.argv[1], sys.argv[2:]
    os.environ.setdefault("UV_SYSTEM_CERTS", "1")
    try:
        lock = (CLONE / ".venv.lock").open("a")
    except OSError as error:
        # A read-only clone with everything installed still runs.
        if not complete(module in NEEDS_DEVELOPMENT):
            sys.exit(f"Cannot write to {CLONE}: {error.strerror}. Clone it to a folder of yours.")
    else:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            install(module in NEEDS_DEVELOPMENT)
        finally:
            lock.close()
    os.environ["PYTHONPATH"] = os.pathsep.join([str(SCRIPT), str(CLONE)])
    os.execv(  # noqa: S606 - no shell wanted
        PYTHON, [str(PYTHON), "-m", f"local.{module}", *arguments]
    )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
