"""What the tests of tutorials share: a folder in which `shmemctl` is a command and tests/data is the tree's."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from page import measured_difference, too_wide
from terminal import Screen, Terminal  # it finds support
from support import BINARY, SOURCE, clean_environment, launcher_environment

OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            # Two ranks or more on whatever number of cores this machine has; nothing is started elsewhere.
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_plm": "isolated"}


def has_open_mpi():
    """Other MPIs have an mpirun, too, with other flags."""
    return shutil.which("mpirun") is not None and "Open MPI" in subprocess.run(
        ["mpirun", "--version"], capture_output=True, text=True, check=False).stdout


needs_open_mpi = unittest.skipUnless(has_open_mpi(), "no mpirun of Open MPI")


class Journey(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "shmemctl").symlink_to(BINARY)
        (self.folder / "tests").symlink_to(SOURCE / "tests")
        self.variables = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", **OPEN_MPI, **launcher_environment()}

    def bash(self, command, timeout=300):
        """Through pipes."""
        return subprocess.run(["bash", "-c", command], cwd=self.folder, env=clean_environment(**self.variables),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False)

    def terminal(self, command):
        """On a terminal of 80 x 24."""
        return Terminal("/bin/bash", "-c", f"cd '{self.folder}' && {command}", environment=self.variables)

    def assert_shown(self, shown, written):
        """Of what was measured: what the page shows and what the program wrote have the same form, and nobody has to
        widen a window for it."""
        self.assertEqual(measured_difference(shown, written), "", "\n".join(written))
        self.assertEqual(too_wide(written), [])

    def assert_piped(self, command, shown, code=0):
        done = self.bash(command)
        self.assertEqual((done.returncode, done.stderr), (code, ""), done.stdout)
        self.assertNotIn("\x1b", done.stdout)
        self.assert_shown(shown, done.stdout.splitlines())

    def assert_on_terminal(self, command, shown, code=0):
        """Returns the terminal."""
        terminal = self.terminal(command)
        self.assertEqual(terminal.code, code, terminal.screen.text())
        self.assert_shown(shown, lines_of(terminal))
        return terminal


def lines_of(terminal):
    """What was left on a terminal, without the breaks that are the terminal's."""
    wide = Screen(columns=100000)
    wide.feed(terminal.raw)
    return wide.text().rstrip().splitlines()
