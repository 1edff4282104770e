"""Runs the binary, and knows where fixtures and recorded machines are."""
import json
import os
import pathlib
import subprocess
import unittest

BINARY = os.environ.get("SHMEMCTL_BINARY", str(pathlib.Path(__file__).resolve().parents[2] / "build" / "shmemctl"))
SOURCE = pathlib.Path(__file__).resolve().parents[2]
DATA = SOURCE / "tests" / "data"
RECORDED = SOURCE.parent / "shared" / "topologies"

needs_recorded = unittest.skipUnless(RECORDED.is_dir(), "no recorded machines beside this checkout")


def clean_environment(**variables):
    """The environment without variables that would change results."""
    prefixes = ("SHMEMCTL_", "NVSHMEM_", "NCCL_", "UCX_", "FI_", "LC_", "LANG", "NO_COLOR", "CLICOLOR", "FORCE_COLOR",
                "COLUMNS")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(prefixes)}
    kept["LC_ALL"] = "C.UTF-8"
    kept["XDG_CONFIG_HOME"] = "/nonexistent" # not this user's configuration file
    if os.environ.get("SHMEMCTL_SANITIZE"):
        # UCX's hooks in the C library call it from threads that a sanitizer has let go.
        kept["UCX_MEM_MMAP_HOOK_MODE"] = "none"
    kept.update(variables)
    return kept


def launcher_environment():
    """What a launcher needs for ranks that are built as SHMEMCTL_SANITIZE says."""
    if "thread" not in os.environ.get("SHMEMCTL_SANITIZE", ""):
        return {}
    # PMIx's shared segment wants an address that is ThreadSanitizer's; Open MPI over UCX does not come
    # out of MPI_Init.
    return {"PMIX_MCA_gds": "hash", "OMPI_MCA_pml": "ob1", "OMPI_MCA_osc": "^ucx"}


def run(*arguments, stdin=None, env=None, timeout=300):
    """(exit code, stdout, stderr) as text; stdin may be bytes."""
    done = subprocess.run(
        [BINARY, *map(str, arguments)], input=stdin if stdin is not None else b"",
        capture_output=True, env=clean_environment(**(env or {})), timeout=timeout, check=False)
    return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")


def report_of(*arguments, **keywords):
    """Runs with --json - and returns (exit code, document)."""
    code, out, err = run(*arguments, "--json", "-", **keywords)
    assert code in (0, 1), f"exit {code}: {err}"
    return code, json.loads(out)


def error_lines(stderr):
    return [line for line in stderr.splitlines() if line.startswith("shmemctl: error: ")]


class CliTest(unittest.TestCase):
    """Adds the checks that every failing run must pass."""

    def assert_refused(self, result, code=2):
        """One error line, one fix line, the right exit code, nothing on stdout."""
        got, out, err = result
        self.assertEqual(got, code, err)
        self.assertEqual(out, "")
        lines = err.splitlines()
        self.assertEqual(len(error_lines(err)), 1, err)
        self.assertEqual(len([line for line in lines if line.startswith("shmemctl: fix: ")]), 1, err)
        return err
