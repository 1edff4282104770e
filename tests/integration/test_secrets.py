"""Secrets of a job are in no output: every command, every format, with a marker in every place that holds one."""
import json
import pathlib
import tempfile
import unittest

from support import BINARY, DATA, CliTest, run

NODE = DATA / "nccl" / "hgx-8gpu-8nic.xml"
MARK = "hunter2marker"
HEX = "5ec7e75ec7e75ec7e75ec7e75ec7e700"
SECRETS = {"SHMEMCTL_BOOTSTRAP_UID_SECRET": MARK,
           "SHMEMCTL_BOOTSTRAP_UID": f"shmemctl-uid-1:{HEX}:10.0.0.1:5000",
           "NVSHMEM_BOOTSTRAP_UID_SECRET": MARK,
           "NCCL_NET_PLUGIN_TOKEN": MARK,
           "UCX_NET_DEVICES": f"eth0,{MARK}"}
STAND_IN = "set, not shown"


class Secrets(CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def assert_hidden(self, text, where):
        for secret in (MARK, HEX):
            self.assertNotIn(secret, text, where)

    def run_hidden(self, *arguments, env=None, codes=(0, 1), stdin=None):
        code, out, err = run(*arguments, env=SECRETS if env is None else env, stdin=stdin)
        self.assertIn(code, codes, (arguments, err))
        self.assert_hidden(out, arguments)
        self.assert_hidden(err, arguments)
        return out

    def test_env_says_that_they_are_set(self):
        for flags in ((), ("--all",), ("--verbose", "--log-level", "debug"), ("--json", "-")):
            out = self.run_hidden("env", *flags)
            self.assertIn(STAND_IN, out, flags)
        rows = {row["name"]: row for row in json.loads(self.run_hidden("env", "--json", "-"))["options"]}
        self.assertEqual(rows["SHMEMCTL_BOOTSTRAP_UID_SECRET"]["value"], STAND_IN)
        self.assertEqual(rows["SHMEMCTL_BOOTSTRAP_UID"]["value"], STAND_IN)
        self.assertEqual(rows["SHMEMCTL_BOOTSTRAP_UID"]["origin"], "environment")

    def test_reports_record_what_explains_a_run(self):
        env = {"NCCL_IB_HCA": "mlx5_0", "UCX_TLS": "tcp", "FI_PROVIDER": "efa", "CUDA_VISIBLE_DEVICES": "1,0",
               "SHMEMCTL_BOOTSTRAP_UID_SESSION_ID": MARK, "AWS_SESSION": MARK, "NCCL_IB_HCA_OTHER": MARK}
        path = self.folder / "r.json"
        self.run_hidden("topo", "--from", NODE, "--json", path, env=env)
        recorded = json.loads(path.read_text())["env"]
        expected = {"NCCL_IB_HCA": "mlx5_0", "UCX_TLS": "tcp", "FI_PROVIDER": "efa",
                    "CUDA_VISIBLE_DEVICES": "1,0", "SHMEMCTL_BOOTSTRAP_UID_SESSION_ID": STAND_IN}
        self.assertEqual({name: recorded.get(name) for name in expected}, expected)
        self.assertFalse({"AWS_SESSION", "NCCL_IB_HCA_OTHER", "HOME"} & set(recorded), recorded)
        self.run_hidden("env", env=env)
        code, out, err = run("bringup", env={"SHMEMCTL_BOOTSTRAP": "uid",
                                             "SHMEMCTL_BOOTSTRAP_UID_RANK": "0", "SHMEMCTL_BOOTSTRAP_UID_SIZE": "2",
                                             "SHMEMCTL_BOOTSTRAP_UID_SESSION_ID": MARK})
        self.assertEqual(code, 2, err)
        self.assertIn("no :port given", err)
        self.assert_hidden(out + err, "a session id that is none")

    def test_a_configuration_file_cannot_bypass_the_check(self):
        config = self.folder / "c.ini"
        config.write_text(f"bootstrap-uid-secret = {MARK}\n")
        document = json.loads(self.run_hidden("topo", "--from", NODE, "--config", config, "--json", "-", env={}))
        self.assertEqual(document["env"]["SHMEMCTL_BOOTSTRAP_UID_SECRET"], STAND_IN)

    def every_report(self):
        """A report of each command that writes one."""
        for name, words in (("topo", ("topo", "--from", NODE)), ("env", ("env",)),
                            ("doctor", ("doctor", "--only", "memlock")), ("hotspots", ("hotspots", "-D", "0.1")),
                            ("sim", ("sim", "--from", NODE, "--steps", "2")),
                            ("during", ("hotspots", "--during", "sh", "-c",
                                        f"SHMEMCTL_BOOTSTRAP_UID_SECRET={MARK} true; : 'A_PASSWORD={MARK}'")),
                            ("bringup", ("run", "-n", "2", "bringup", "--symmetric-size", "16M", "--log-level",
                                         "debug")),
                            ("bench", ("run", "-n", "2", "bench", "barrier", "--quick", "--symmetric-size", "16M"))):
            path = self.folder / f"{name}.json"
            if name == "during":  # all that follows belongs to the command
                self.run_hidden("hotspots", "--json", path, *words[1:])
            else:
                self.run_hidden(*words, "--verbose", "--json", path)
            yield name, path

    def test_every_command_and_every_format(self):
        paths = []
        for name, path in self.every_report():
            with self.subTest(name):
                self.assert_hidden(path.read_text(), name)
                self.assertIn(STAND_IN, path.read_text())
                paths.append(path)
                for words in (("show", path, "--verbose"), ("html", path), ("csv", path), ("junit", path),
                              ("prom", path), ("merge", path), ("annotate", "--format", "markdown", path)):
                    self.run_hidden("report", *words, codes=(0, 1, 2))
        self.run_hidden("report", "html", *paths)
        self.run_hidden("report", "diff", paths[0], paths[0], codes=(0, 1, 2))

    def test_arguments_of_every_recorded_command(self):
        """Secrets that are arguments: of the launcher, of a watched command, of this program."""
        secrets = ("--token", MARK, f"--password={MARK}", "--api-key", MARK, f"https://me:{MARK}@host/x",
                   "-x", f"SECRET_KEY={MARK}")
        path = self.folder / "during.json"
        self.run_hidden("hotspots", "--json", path, "--during", "sh", "-c", "true", *secrets, env={})
        self.assert_hidden(path.read_text(), path)
        watched = json.loads(path.read_text())["hotspots"]["command"]["argv"]
        hidden = f"({STAND_IN})"
        self.assertEqual(watched, ["sh", "-c", "true", "--token", hidden, f"--password={hidden}", "--api-key",
                                   hidden, f"https://me:{hidden}@host/x", "-x", f"SECRET_KEY={hidden}"])
        path = self.folder / "job.json"
        self.run_hidden("run", "-n", "2", "sh", "-c",
                        f"exec '{BINARY}' bringup --symmetric-size 16M --json '{path}'", *secrets, env={})
        self.assert_hidden(path.read_text(), path)
        command = json.loads(path.read_text())["job"]["command"]
        self.assertEqual(command[command.index("--token"):], watched[3:])

    def test_a_bring_up_that_fails(self):
        """By hand, with a session that nobody serves: errors and the report say why, and not the secret."""
        path = self.folder / "failed.json"
        env = {"SHMEMCTL_BOOTSTRAP_UID_SECRET": MARK, "SHMEMCTL_BOOTSTRAP_UID_SESSION_ID": "127.0.0.1:9",
               "SHMEMCTL_BOOTSTRAP_UID_RANK": "1", "SHMEMCTL_BOOTSTRAP_UID_SIZE": "2"}
        self.run_hidden("bringup", "--timeout", "1", "--json", path, "--log-level", "debug", env=env,
                        codes=(3, 124))
        env["SHMEMCTL_BOOTSTRAP_UID_RANK"] = "0"
        self.run_hidden("bringup", "--timeout", "1", "--json", path, "--log-level", "debug", env=env,
                        codes=(2, 3, 124))
        self.assert_hidden(path.read_text(), path)
        self.assertEqual(json.loads(path.read_text())["env"]["SHMEMCTL_BOOTSTRAP_UID_SECRET"], STAND_IN)

    def test_a_report_of_an_older_version_is_not_passed_on(self):
        document = json.loads(run("env", "--json", "-", env={"SHMEMCTL_BOOTSTRAP_UID_SECRET": "x"})[1])
        document["env"]["SHMEMCTL_BOOTSTRAP_UID_SECRET"] = MARK
        for row in document["options"]:
            if row["name"] == "SHMEMCTL_BOOTSTRAP_UID_SECRET":
                row["value"] = MARK
        path = self.folder / "old.json"
        path.write_text(json.dumps(document))
        for words in (("show", path), ("html", path), ("merge", path), ("csv", path), ("prom", path)):
            self.run_hidden("report", *words, env={})


if __name__ == "__main__":
    unittest.main()
