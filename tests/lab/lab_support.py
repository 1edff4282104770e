"""Boots labs for tests; skips, with the reason, where this host cannot."""
import os
import pathlib
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LAB = SOURCE / "scripts" / "lab"
sys.path.insert(0, str(LAB))

# pylint: disable=wrong-import-position
import image  # noqa: E402
from errors import EXIT_UNAVAILABLE, Unavailable  # noqa: E402
from lab import Lab  # noqa: E402
from options import Options, parser, from_arguments  # noqa: E402

BINARY = os.environ.get("SHMEMCTL_BINARY", str(SOURCE / "build" / "shmemctl"))


def options(*words):
    """Options as scripts/lab/run reads them."""
    return from_arguments(parser("run", True).parse_args([str(word) for word in words]))


def run_lab(*words):
    """A Result; arguments are those of scripts/lab/run."""
    return Lab(options(*words)).run()


def main():
    """Runs the tests of the calling file; exit code 77 where there can be no lab."""
    try:
        image.prepare()
    except Unavailable as error:
        print(f"skipped: {error}; fix: {error.fix}")
        sys.exit(EXIT_UNAVAILABLE)
    unittest.main()
