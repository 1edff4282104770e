"""Completion: what the program offers, and that bash, zsh and fish offer it at a Tab."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import support
from support import CliTest, run
from terminal import Terminal


def offered(*words):
    """(what the shell adds itself, the words) at the end of this command line; the last word is unfinished."""
    code, out, err = run("__complete", *words)
    assert (code, err) == (0, ""), (words, code, err)
    kind, *lines = out.splitlines()
    return kind, [line.split("\t")[0] for line in lines]


class Words(CliTest):
    def test_subcommands(self):
        kind, words = offered("")
        self.assertEqual(kind, "words")
        self.assertLessEqual({"check", "topo", "report", "help", "version", "completion"}, set(words))
        self.assertNotIn("reference", words)
        self.assertEqual(offered("to")[1], ["topo"])
        self.assertEqual(offered("report", "h")[1], ["html"])
        self.assertEqual(offered("--json", "topo", "do")[1], ["doctor"]) # topo is a file there
        self.assertIn("topo", offered("help", "t")[1])

    def test_flags(self):
        words = offered("topo", "--")[1]
        self.assertLessEqual({"--from", "--policy", "--json", "--quiet"}, set(words))
        self.assertNotIn("--iters", words)
        self.assertEqual(offered("topo", "--com")[1], ["--compare-versions"])
        self.assertIn("-n", offered("bench", "put", "-")[1])
        self.assertNotIn("--json", offered("run", "--")[1]) # it is an option of the command

    def test_values(self):
        for words, expected in ((("topo", "--policy", ""), ["nvshmem", "nccl", "optimal"]),
                                (("topo", "--policy=o"), ["--policy=optimal"]),
                                (("--color", "a"), ["auto", "always"]),
                                (("topo", "--log-level", "w"), ["warning"]),
                                (("completion", ""), ["bash", "fish", "zsh"]),
                                (("report", "annotate", "--format", "gi"), ["github", "gitlab"]),
                                (("moe", "--dtype", ""), ["bf16", "fp8"]),
                                (("bench", "put", "--transport", "shm,ib"), ["shm,ibrc", "shm,ibdevx", "shm,ibgda"]),
                                (("bench", "--pin", "n"), ["none"]),
                                (("sim", "--routing", "zi"), ["zipf"]),
                                (("doctor", "--only", "meml"), ["memlock"]),
                                (("check", "--only", "exp"), ["expect"]),
                                (("check", "--skip", "bench-"), ["bench-gpu"]),
                                (("doctor", "--skip", "memlock,librdm"), ["memlock,librdmacm"])):
            with self.subTest(words=words):
                self.assertEqual(sorted(offered(*words)[1]), sorted(expected))

    def test_a_value_that_has_no_names_offers_none(self):
        self.assertEqual(offered("bench", "put", "-n", ""), ("words", []))
        self.assertEqual(offered("topo", "--json", ""), ("files", []))
        self.assertEqual(offered("topo", "--json="), ("files", []))
        self.assertEqual(offered("topo", "--sysroot", ""), ("directories", []))
        self.assertEqual(offered("report", "show", ""), ("files", []))

    def test_cases(self):
        words = offered("bench", "")[1]
        self.assertLessEqual({"put", "get", "all", "barrier"}, set(words))
        self.assertEqual(offered("bench", "put", "-n", "10", "put-l")[1], ["put-latency"])
        self.assertEqual(len(words), len(set(words)))

    def test_behind_run(self):
        for run_words in (("run", "-n", "2"), ("run", "-n2", "--label"), ("run", "--pes=4", "--nodes", "2"),
                          ("run", "-n", "2", "--")):
            with self.subTest(run_words=run_words):
                kind, words = offered(*run_words, "ben")
                self.assertEqual((kind, words), ("commands", ["bench"]))
                self.assertEqual(offered(*run_words, "bench", "put-la")[1], ["put-latency"])
                self.assertIn("--json", offered(*run_words, "bench", "put", "--")[1])
                self.assertEqual(offered(*run_words, "bench", "--traffic", "m")[1], ["matrix"])
        self.assertEqual(offered("run", "-n", "2", "./program", "--"), ("files", []))
        self.assertEqual(offered("run", "-n", ""), ("words", []))

    def test_behind_during(self):
        self.assertEqual(offered("hotspots", "--during", "be"), ("commands", ["bench"]))
        self.assertEqual(offered("hotspots", "--during", "run", "-n", "8", "mo")[1], ["moe"])
        self.assertEqual(offered("hotspots", "--during", "mpirun", "-")[0], "files")

    def test_what_is_offered_is_taken(self):
        """Every value of every flag that has a fixed set of them."""
        values = 0
        for subcommand in ("topo", "bench", "moe", "sim"):
            for flag in offered(subcommand, "--")[1]:
                for word in offered(subcommand, f"{flag}=")[1]:
                    with self.subTest(subcommand=subcommand, word=word):
                        values += 1
                        self.assertEqual(run(subcommand, word, "--help")[0], 0) # values are checked before
        self.assertGreater(values, 60)
        self.assertEqual(run("topo", "--policy=none", "--help")[0], 2)


class Shells(CliTest):
    """In real shells on a terminal; those that are not installed are left out."""

    TYPED = (  # the text typed before Tab, and the text after it
        ("shmemctl top", "shmemctl topo"),
        ("shmemctl topo --comp", "shmemctl topo --compare-versions"),
        ("shmemctl topo --policy opt", "shmemctl topo --policy optimal"),
        ("shmemctl topo --policy=opt", "shmemctl topo --policy=optimal"),
        ("shmemctl report h", "shmemctl report html"),
        ("shmemctl report show rep", "shmemctl report show report.json"),
        ("shmemctl topo --json=rep", "shmemctl topo --json=report.json"),
        ("shmemctl run -n 2 bringu", "shmemctl run -n 2 bringup"),
        ("shmemctl run -n 2 bench put-l", "shmemctl run -n 2 bench put-latency"),
        ("shmemctl run -n 2 bench --traffic mat", "shmemctl run -n 2 bench --traffic matrix"),
        ("SHMEMCTL_POLICY=nccl shmemctl env --cha", "SHMEMCTL_POLICY=nccl shmemctl env --changed"),
    )

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "shmemctl").symlink_to(pathlib.Path(support.BINARY).resolve())
        (self.folder / "here" / "html").mkdir(parents=True) # is not what `report h` means
        (self.folder / "here" / "report.json").touch()
        self.environment = support.clean_environment(
            PATH=f"{self.folder / 'bin'}:{os.environ['PATH']}", HOME=str(self.folder), TERM="xterm",
            XDG_CONFIG_HOME=str(self.folder / "config"))

    def check(self, shell, arguments, setup):
        with Terminal(arguments, self.environment, columns=200, seconds=400) as terminal:
            terminal.type(f"cd {self.folder / 'here'}\n{setup}\necho rea''dy\n")
            terminal.wait_for("ready\r\n")
            for typed, expected in self.TYPED:
                with self.subTest(shell=shell, typed=typed):
                    # The shell writes the line as it is after the Tab into a file.
                    terminal.type(f"{typed}\t\x01echo '\x05' > ../line; echo do''ne\n")
                    terminal.wait_for("done\r\n")
                    self.assertEqual((self.folder / "line").read_text().strip(), expected)

    def test_bash(self):
        self.check("bash", ["bash", "--norc", "--noprofile", "-i"], "source <(shmemctl completion bash)")

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh(self):
        self.check("zsh", ["zsh", "-f", "-i"],
                   "bindkey -e; autoload -U compinit; compinit -u -D; source <(shmemctl completion zsh)")

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish(self):
        self.check("fish", ["fish", "--no-config", "-i"], "shmemctl completion fish | source")

    def test_zsh_and_fish_can_be_installed_as_files(self):
        self.assertTrue(run("completion", "zsh")[1].startswith("#compdef shmemctl\n"))
        self.assertIn("complete -c shmemctl", run("completion", "fish")[1])
        subprocess.run(["bash", "-n"], input=run("completion", "bash")[1].encode(), check=True)


if __name__ == "__main__":
    unittest.main()
