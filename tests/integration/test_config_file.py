"""Configuration files: where they are, what may be in them, what wins."""
import json
import pathlib
import tempfile
import unittest

from support import DATA, CliTest, report_of, run

NODE = DATA / "nccl" / "hgx-8gpu-8nic.xml"


class ConfigFiles(CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "shmemctl.conf" # the user's, where XDG_CONFIG_HOME is this folder
        self.env = {"XDG_CONFIG_HOME": str(self.folder)}

    def write(self, text, name="shmemctl.conf"):
        (self.folder / name).write_text(text)
        return self.folder / name

    def refused(self, text, *call):
        self.write(text)
        return self.assert_refused(run(*call, env=self.env))

    def test_the_users_file_is_read(self):
        self.write("world = deepep-ht\n")
        document = report_of("topo", "--from", NODE, env=self.env)[1]
        self.assertEqual(document["mapping"]["world"], "deepep-ht")
        self.assertEqual(document["env"]["SHMEMCTL_WORLD"], "deepep-ht")

    def test_without_the_variable_it_is_below_home(self):
        (self.folder / ".config").mkdir()
        self.write("world = deepep-ht\n", ".config/shmemctl.conf")
        env = {"HOME": str(self.folder), "XDG_CONFIG_HOME": ""}
        self.assertEqual(report_of("topo", "--from", NODE, env=env)[1]["mapping"]["world"], "deepep-ht")

    def test_a_file_that_is_given_replaces_it(self):
        self.write("world = deepep-ht\n")
        other = self.write("policy = nccl\n", "other")
        mapping = report_of("topo", "--from", NODE, "--config", other, env=self.env)[1]["mapping"]
        self.assertEqual((mapping["world"], mapping["policy"]), ("node", "nccl"))
        mapping = report_of("topo", "--from", NODE, "--config", "/dev/null", env=self.env)[1]["mapping"]
        self.assertEqual(mapping["world"], "node")

    def test_command_line_and_environment_win(self):
        self.write("world = deepep-ht\n[topo]\npolicy = nccl\n")
        mapping = report_of("topo", "--from", NODE, "--world", "node", env=self.env)[1]["mapping"]
        self.assertEqual((mapping["world"], mapping["policy"]), ("node", "nccl"))
        for name in ("SHMEMCTL_WORLD", "SHMEMCTL_POLICY"):
            mapping = report_of("topo", "--from", NODE, env={**self.env, name: "deepep-ll" if "WORLD" in name
                                                             else "optimal"})[1]["mapping"]
            self.assertIn("optimal" if "POLICY" in name else "deepep-ll", (mapping["policy"], mapping["world"]))

    def test_flags_of_a_subcommand(self):
        self.write("[bench]\nmin-bytes = 64\nmax-bytes = 128\niters = 20\nno-verify = true\n[moe]\nnum-tokens = 4\n")
        rows = self.rows_of_a_pair()
        sizes = {row["params"]["size_bytes"] for row in rows}
        self.assertEqual(sizes, {64, 128})
        self.assertEqual({row["verified"] for row in rows}, {"unchecked"})

    def rows_of_a_pair(self, *flags):
        code, out, err = run("run", "-n", "2", "bench", "put", "--json", "-", *flags, env=self.env)
        self.assertIn(code, (0, 1), err)
        return json.loads(out)["results"]

    def test_a_flag_on_the_command_line_wins(self):
        self.write("[bench]\nmin-bytes = 64\nmax-bytes = 64\niters = 20\n")
        self.assertEqual({row["params"]["size_bytes"] for row in self.rows_of_a_pair("-b", "8", "-e", "8")}, {8})
        rows = self.rows_of_a_pair("-D", "0.05") # excludes --iters, which the file has
        self.assertEqual({row["params"]["size_bytes"] for row in rows}, {64})

    def test_a_flag_above_all_sections_is_that_of_every_subcommand_that_has_it(self):
        self.write("max-bytes = 8\nnum-tokens = 4\nquiet = yes\n")
        self.assertEqual(run("topo", "--from", NODE, env=self.env)[1], "")
        self.assertEqual(max(row["params"]["size_bytes"] for row in self.rows_of_a_pair()), 8)
        self.write("quiet = yes\n[topo]\nquiet = no\n")
        self.assertNotEqual(run("topo", "--from", NODE, env=self.env)[1], "")

    def test_what_is_required_may_stand_there(self):
        self.write("[run]\npes = 3\n[report.annotate]\nformat = markdown\n")
        self.assertEqual(run("run", "sh", "-c", "echo pe", env=self.env)[1], "pe\n" * 3)
        report = self.folder / "r.json"
        run("topo", "--from", NODE, "--json", report)
        self.assertEqual(run("report", "annotate", report, env=self.env)[0], 0)

    def test_a_report_file_is_not_that_of_each_pe(self):
        self.write(f"json = {self.folder}/r.json\nforce = true\n[bench]\nmax-bytes = 8\n")
        code, _, err = run("run", "-n", "2", "bench", "put", env=self.env)
        self.assertIn(code, (0, 1), err)
        self.assertEqual(json.loads((self.folder / "r.json").read_text())["job"]["pes"], 2)

    def test_every_flag_of_every_subcommand_may_stand_there(self):
        """As a name: its value is another matter."""
        for subcommand in ("check", "topo", "doctor", "env", "bringup", "bench", "moe", "sim", "hotspots", "fabric", "explain", "gather", "run",
                           "report diff", "report check", "report html", "report prom"):
            for line in run("__complete", *subcommand.split(), "--")[1].splitlines()[1:]:
                flag = line.split("\t")[0].removeprefix("--")
                if flag in ("help", "version", "config"):
                    continue
                with self.subTest(subcommand=subcommand, flag=flag):
                    # Read for another subcommand: only the names matter.
                    self.write(f"[{subcommand.replace(' ', '.')}]\n{flag} = 1\n")
                    code, _, err = run("report", "schema", env=self.env)
                    self.assertEqual(code, 0, err)

    def test_names_that_are_none(self):
        for text, words in (("wrold = node\n", ('unknown option "wrold"', "did you mean world?")),
                            ("[bench]\nmin-byte = 8\n", ('[bench] unknown option "min-byte"', "did you mean min-bytes?")),
                            ("[topo]\nmin-bytes = 8\n", ('[topo] unknown option "min-bytes"',)),
                            ("[bnech]\nmin-bytes = 8\n", ("[bnech] names no subcommand", "did you mean bench?")),
                            ("[report.dif]\nalpha = 1%\n", ("[report.dif] names no subcommand", "did you mean diff?")),
                            ("config = x\n", ('"config" cannot be set in a configuration file',)),
                            ("help = true\n", ('"help" cannot be set in a configuration file',))):
            with self.subTest(text=text):
                err = self.refused(text, "topo", "--from", NODE)
                for word in (str(self.file), *words):
                    self.assertIn(word, err)

    def test_bad_values_name_the_file(self):
        for text, call, words in (
                ("[bench]\niters = abc\n", ("bench", "put"), ("--iters: abc is not an integer from 1",)),
                ("[bench]\ntraffic = piar\n", ("bench", "put"), ("unknown value piar", "did you mean pair?")),
                ("quiet = perhaps\n", ("topo",), ("--quiet",)),
                ("policy = ncl\n", ("topo", "--from", NODE), ("POLICY=ncl", "not one of nvshmem, nccl, optimal, in "))):
            with self.subTest(text=text):
                err = self.refused(text, *call)
                for word in (str(self.file), *words):
                    self.assertIn(word, err)

    def test_what_is_wrong_is_printed_once_per_job(self):
        self.write("wrold = node\n")
        code, _, err = run("run", "-n", "4", "bench", "put", env=self.env)
        self.assertEqual((code, err.count("unknown option")), (2, 1), err)

    def test_env_names_the_file(self):
        self.write("hca-list = mlx5_3\n[bench]\niters = 5\n")
        out = run("env", "--changed", env=self.env)[1]
        row = next(line for line in out.splitlines() if line.startswith("SHMEMCTL_HCA_LIST"))
        self.assertIn(str(self.file), row)
        self.assertIn(f"Configuration files: {self.file}", out)

    def test_what_it_sets_is_logged(self):
        self.write("[topo]\ncompare-versions = true\n")
        self.assertIn(f"{self.file} sets --compare-versions",
                      run("-v", "topo", "--from", NODE, env=self.env)[2])


if __name__ == "__main__":
    unittest.main()
