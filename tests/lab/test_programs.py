"""The OpenSHMEM conformance programs, unchanged, over a real RDMA stack. A few of them, for the time
that it takes; all of them with SHMEMCTL_SOAK=1."""
import os
import pathlib
import sys
import tempfile
import unittest

import lab_support

sys.path.insert(0, str(lab_support.SOURCE / "tests" / "integration"))
from test_openshmem import CONFORMANCE, PROGRAMS, compile_program  # noqa: E402 pylint: disable=C0413
from test_transports import LEFT_OUT  # noqa: E402 pylint: disable=C0413

SCRIPT = pathlib.Path(__file__).parent / "guest_programs.sh"
FEW = ("amo", "ordering")
WAYS = ("ibrc", "libfabric", "ucx")


class Programs(unittest.TestCase):
    def test_over_verbs(self):
        soak = os.environ.get("SHMEMCTL_SOAK") == "1"
        names = [name for name in CONFORMANCE if name not in LEFT_OUT] if soak else FEW
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "out"
            (out / "programs").mkdir(parents=True)
            for name in names:
                compile_program(PROGRAMS / f"{name}.c", out / "programs" / name,
                                f"-std={CONFORMANCE[name]}", "-O1")
            result = lab_support.run_lab("--hcas", 1, "--timeout", 3000 if soak else 900, "--out",
                                         out, "--", "sh", SCRIPT, lab_support.BINARY, *names)
            self.assertEqual(result.exit_code, 0, result)
            ends = (out / "ends").read_text(encoding="utf-8").splitlines()
            for line in ends:
                way, program, code = line.split()
                with self.subTest(way=way, program=program):
                    said = (out / f"{way}.{program}").read_text(encoding="utf-8", errors="replace")
                    self.assertEqual(code, "0", said)
            self.assertEqual(len(ends), len(names) * len(WAYS))


if __name__ == "__main__":
    lab_support.main()
