"""The contract: exit codes, where output goes, what an error looks like."""
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import tempfile
import time
import unittest

import support
from support import DATA, CliTest, report_of, run

NODE = DATA / "nccl" / "hgx-8gpu-8nic.xml"


class ExitCodes(CliTest):
    def test_help_and_version_are_0(self):
        for arguments in (["--help"], ["topo", "--help"], ["doctor", "--help"], ["--version"],
                          ["report", "validate", "--help"]):
            code, out, err = run(*arguments)
            self.assertEqual((code, err), (0, ""), arguments)
            self.assertTrue(out)

    def test_version_tells_the_build(self):
        out = run("--version")[1]
        for word in ("shmemctl", "cuda:", "compiler:", "never run on real hardware"):
            self.assertIn(word, out)

    def test_version_as_json(self):
        code, out, err = run("--version", "--json")
        self.assertEqual((code, err), (0, ""))
        tool = json.loads(out)
        self.assertEqual((tool["name"], set(tool)), (
            "shmemctl", {"name", "version", "git_revision", "git_dirty", "build", "report_schema"}
            | ({"git_revision_reason", "git_dirty_reason"} & set(tool))))
        self.assertIn("shmemctl " + tool["version"], run("--version")[1])
        self.assertRegex(tool["build"]["glibc"], r"^2\.\d+$")
        if tool["build"]["cuda"] != "none":
            self.assertRegex(tool["build"]["cuda_driver"], r"^\d+ or newer$")
        for same in (["--json", "--version"], ["version", "--json"], ["-V", "--json", "-"], ["--json=-", "-V"]):
            self.assertEqual(run(*same), (0, out, ""), same)
        self.assert_refused(run("--version", "--json", "-", "-", "--no-such"))

    def test_bad_invocations_are_2(self):
        for arguments in ([], ["nothing"], ["topo", "--no-such-flag"], ["topo", "--world", "mars"],
                          ["topo", "--pes-per-node", "-1"], ["topo", "--nvshmem-version", "x"],
                          ["topo", "--timeout", "0"], ["report"], ["report", "show"],
                          ["doctor", "--only", "no-such-check"], ["completion", "tcsh"],
                          ["topo", "--from", str(NODE), "--gpus", "0,99"],
                          ["topo", "--from", str(NODE), "--format", "nvidia-smi"]):
            self.assert_refused(run(*arguments))

    def test_every_number_has_a_range_that_reference_and_errors_say(self):
        numbers = 0
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(run("reference", "markdown", folder)[0], 0)
            for page in pathlib.Path(folder, "commands").glob("*.md"):
                for line in page.read_text(encoding="utf-8").splitlines():
                    # Options of the option table are listed in options.md.
                    if re.match(r"\| `[^|]*` `(N|NUMBER)` \|", line) and "SHMEMCTL_" not in line:
                        numbers += 1
                        self.assertRegex(line, r" From -?\d\S* to \d\S*\. ", f"{page.name}: no range")
        self.assertGreater(numbers, 20)
        for arguments, value in ((("moe", "--seed"), 4294967296), (("sim", "--seed"), 4294967296),
                                 (("bench", "put", "--seed"), 1 << 64), (("moe", "--num-groups"), 1 << 40),
                                 (("moe", "--expert-alignment"), 1 << 40), (("sim", "--nodes"), 1 << 40),
                                 (("sim", "--hidden"), 1 << 40)):
            with self.subTest(arguments=arguments):
                err = self.assert_refused(run(*arguments, value))
                self.assertRegex(err, rf"{value} is not in range \S+ to \d+")

    def test_seconds_may_have_a_unit(self):
        for duration in ("10s", "9000ms", "0.15m", "9"):
            for arguments in (("version", "--timeout", duration), ("--timeout=" + duration, "version")):
                with self.subTest(arguments=arguments):
                    self.assertEqual(run(*arguments)[0], 0)

    def test_usage_errors_are_full_sentences(self):
        for arguments, words in ((("report", "check", NODE), "report check: no threshold given"),
                                 (("sim", "--from", NODE, "--kill-nic", "mlx5_33"),
                                  "--kill-nic mlx5_33: no NIC mlx5_33 in the topology")):
            with self.subTest(arguments=arguments):
                self.assertIn(words, self.assert_refused(run(*arguments)))

    MISTYPED = (  # arguments, what the error line says, what the fix line suggests
        (["bnech", "put"], "shmemctl: unknown subcommand bnech", "did you mean bench?"),
        (["tpo"], "shmemctl: unknown subcommand tpo", "did you mean topo?"),
        (["doctr", "--only", "rdma"], "shmemctl: unknown subcommand doctr", "did you mean doctor?"),
        (["--json", "x.json", "hotspot"], "unknown subcommand hotspot", "did you mean hotspots?"),
        (["report", "shwo", "x.json"], "shmemctl report: unknown subcommand shwo", "did you mean show?"),
        (["report", "valdate", "x.json"], "shmemctl report: unknown subcommand valdate", "did you mean validate?"),
        (["topo", "--jsn", "x"], "shmemctl topo: unknown option --jsn", "did you mean --json?"),
        (["topo", "--form", "x"], "shmemctl topo: unknown option --form", "did you mean --from?"),
        (["topo", "-json"], "unknown option", "--help lists all options"),
        (["topo", "--polcy=nccl"], "shmemctl topo: unknown option --polcy", "did you mean --policy?"),
        (["topo", "--hca-lst", "mlx5_0"], "unknown option --hca-lst", "did you mean --hca-list?"),
        (["doctor", "--skp", "rdma"], "shmemctl doctor: unknown option --skp", "did you mean --skip?"),
        (["sim", "--nods", "4"], "shmemctl sim: unknown option --nods", "did you mean --nodes?"),
        (["hotspots", "--wacth", "1"], "unknown option --wacth", "did you mean --watch?"),
        (["report", "diff", "a", "b", "--alfa", "1%"], "shmemctl report diff: unknown option --alfa",
         "did you mean --alpha?"),
        (["env", "--al"], "shmemctl env: unknown option --al", "did you mean --all?"),
        (["hotspots", "--from", "node.tar.zst"], "shmemctl hotspots: unknown option --from",
         "--from is an option of topo, doctor, sim, inspect;"),
        (["check", "--from", "node.tar.zst"], "shmemctl check: unknown option --from",
         "--from is an option of topo, doctor, sim, inspect;"),
        (["topo", "--world", "deepep-hl"], "--world: unknown value deepep-hl", "did you mean deepep-ht?"),
        (["topo", "--policy", "ncl"], "--policy: unknown value ncl", "did you mean nccl?"),
        (["topo", "--format", "hwlocxml"], "--format: unknown value hwlocxml", "did you mean hwloc-xml?"),
        (["topo", "--dump", "ncclxml"], "--dump: unknown value ncclxml", "did you mean nccl-xml?"),
        (["sim", "--fabric", "fattree"], "--fabric: unknown value fattree", "did you mean fat-tree?"),
        (["sim", "--pattern", "all-to-al"], "--pattern: unknown value all-to-al", "did you mean all-to-all?"),
        (["report", "annotate", "--format", "gitub", "x"], "--format: unknown value gitub", "did you mean github?"),
        (["doctor", "--only", "memlok"], "memlok", "did you mean memlock?"),
        (["--colour", "never", "topo"], "unknown option --colour", "did you mean --color?"),
        (["topo", "--color", "nver"], "--color: unknown value nver", "did you mean never?"),
    )

    def test_a_mistyped_call_gets_the_nearest_spelling(self):
        for arguments, problem, suggestion in self.MISTYPED:
            with self.subTest(arguments=arguments):
                error, fix = self.assert_refused(run(*arguments)).splitlines()
                self.assertIn(problem, error)
                self.assertIn(suggestion, fix)

    #: Flags that would have no effect, or of which one would win.
    IDLE = (
        (["topo", "--from", NODE, "--dump", "hwloc-xml", "--measure"], "--measure: --dump hwloc-xml writes"),
        (["topo", "--from", NODE, "--dump", "nccl-xml", "--compare-versions"], "--compare-versions: --dump nccl-xml"),
        (["topo", "--from", NODE, "--dump", "nccl-xml", "--json", "no-such-folder/x"], "--json: --dump nccl-xml"),
        (["topo", "--from", NODE, "--dump", "nccl-xml", "--csv", "no-such-folder/x"], "--csv: --dump nccl-xml"),
        (["topo", "--from", NODE, "--dump", "report", "--json", "no-such-folder/x"], "--json: --dump report writes"),
        (["topo", "--from", NODE, "--sysroot", "/"], "--from and --sysroot: cannot be given together"),
        (["sim", "--from", NODE, "--sysroot", "/"], "--from and --sysroot: cannot be given together"),
        (["explain", "--from", NODE, "--sysroot", "/"], "--from and --sysroot: cannot be given together"),
        (["doctor", "--from", NODE, "--sysroot", "/"], "--from and --sysroot: cannot be given together"),
        (["inspect", "--all", "--from", NODE, "--sysroot", "/"], "--from and --sysroot: cannot be given together"),
        (["moe", "--verify-every", "2", "--no-verify"], "--verify-every and --no-verify: cannot be given together"),
    )

    def test_flags_without_effect_are_refused(self):
        for arguments, problem in self.IDLE:
            with self.subTest(arguments=arguments):
                error, fix = self.assert_refused(run(*arguments)).splitlines()
                self.assertIn(problem, error)
                self.assertIn("omit ", fix)

    def test_nothing_is_suggested_for_what_is_near_to_nothing(self):
        for arguments in (["frobnicate"], ["topo", "--zzzzzzzzzzzz"], ["topo", "--world", "jupiter"]):
            with self.subTest(arguments=arguments):
                self.assertNotIn("did you mean", self.assert_refused(run(*arguments)))

    def test_a_misspelt_check_gets_the_nearest_one(self):
        self.assertIn("memlock", self.assert_refused(run("doctor", "--only", "memlok")))

    def test_flags_stand_in_any_order(self):
        before = run("--quiet", "topo", "--from", NODE)
        after = run("topo", "--from", NODE, "--quiet")
        self.assertEqual(before, after)
        self.assertEqual(before[1], "")


class Output(CliTest):
    def test_json_on_stdout_is_alone_there(self):
        code, document = report_of("topo", "--from", NODE)
        self.assertEqual(code, document["exit_code"])
        self.assertEqual(document["status"], "complete")

    def test_show_prints_what_topo_printed(self):
        text = run("topo", "--from", NODE)[1]
        document = run("topo", "--from", NODE, "--json", "-")[1]
        shown = run("report", "show", "-", stdin=document.encode())[1]
        self.assertEqual(text, shown)

    def test_an_existing_file_is_kept_without_force(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "report.json"
            path.write_text("mine")
            self.assert_refused(run("topo", "--from", NODE, "--json", path))
            self.assertEqual(path.read_text(), "mine")
            code = run("topo", "--from", NODE, "--json", path, "--force")[0]
            self.assertIn(code, (0, 1))
            self.assertEqual(json.loads(path.read_text())["schema"]["name"], "shmemctl.report")
            self.assertEqual([p.name for p in pathlib.Path(folder).iterdir()], ["report.json"])

    def test_a_full_disk_is_3(self):
        code, _, err = run("topo", "--from", NODE, "--json", "/dev/full")
        self.assertEqual(code, 3)
        self.assertIn("No space left on device", err)
        with open("/dev/full", "wb") as full:
            done = subprocess.run([support.BINARY, "topo", "--from", str(NODE)], stdout=full,
                                  stderr=subprocess.PIPE, env=support.clean_environment(), check=False)
        self.assertEqual(done.returncode, 3)
        self.assertEqual(len(support.error_lines(done.stderr.decode())), 1)

    def test_a_missing_folder_is_exit_code_3(self):
        self.assertEqual(run("topo", "--from", NODE, "--json", "/no/such/folder/x.json")[0], 3)

    def test_colour_only_when_asked_for(self):
        self.assertNotIn("\x1b[", run("topo", "--from", NODE)[1])
        self.assertIn("\x1b[", run("topo", "--from", NODE, "--color", "always")[1])

    def test_config_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "c.ini"
            path.write_text("world = deepep-ht\n")
            document = report_of("topo", "--from", NODE, "--config", path)[1]
            self.assertEqual(document["mapping"]["world"], "deepep-ht")
            path.write_text("wrold = node\n")
            self.assertIn("did you mean world", self.assert_refused(
                run("topo", "--from", NODE, "--config", path)))


class Aborted(CliTest):
    """Interrupted, or out of time: the report is written all the same."""

    def start(self, folder, *arguments):
        return subprocess.Popen(
            [support.BINARY, "topo", "--from", "-", "--json", str(folder / "r.json"), *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=support.clean_environment())

    def check_incomplete(self, folder, exit_code):
        document = json.loads((folder / "r.json").read_text())
        self.assertEqual(document["status"], "incomplete")
        self.assertEqual(document["exit_code"], exit_code)
        self.assertEqual(run("report", "validate", folder / "r.json")[0], 0)

    def test_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                process = self.start(folder)
                self.wait_until_it_reads(process)
                process.send_signal(number)
                process.wait(timeout=300) # with its stdin open, so that nothing else can end it
                process.communicate()
                self.assertEqual(process.returncode, 130)
                self.check_incomplete(folder, 130)

    def wait_until_it_reads(self, process):
        """Until its main thread sleeps in read(): only then is it past its start."""
        for _ in range(10000):
            path = pathlib.Path(f"/proc/{process.pid}/syscall")
            try:
                if path.read_text().startswith("0 0x0 "):
                    return
            except OSError:
                pass
            time.sleep(0.01)

    def test_a_deadline_names_what_was_waited_for(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            process = self.start(folder, "--timeout", "1")
            process.wait(timeout=300) # its stdin stays open: nothing ever comes
            err = process.stderr.read().decode()
            process.communicate()
            self.assertEqual(process.returncode, 124)
            self.assertIn("reading -: cannot finish: timed out after 1 s", err)
            self.check_incomplete(folder, 124)


class BadInput(CliTest):
    def refuse_bytes(self, data, *words):
        err = self.assert_refused(run("topo", "--from", "-", stdin=data))
        for word in words:
            self.assertIn(word, err)

    def test_not_any_format(self):
        for data in (b"", b"\n\n", b"hello", b"\x00\x01\x02", b"<html></html>", b"{}", b"[1, 2]",
                     b"\xff\xfe<\x00a\x00", b"<graphs version='1'></graphs>"):
            self.refuse_bytes(data)

    def test_truncated(self):
        self.refuse_bytes(NODE.read_bytes()[:-100], "line")

    def test_not_utf8(self):
        data = NODE.read_bytes().replace(b"mlx5_0", b"mlx\xff_0")
        self.refuse_bytes(data, "line")

    def test_a_newer_schema(self):
        document = report_of("topo", "--from", NODE)[1]
        document["schema"]["version"] = "2.0.0"
        self.refuse_bytes(json.dumps(document).encode(), "2.0.0")

    def test_entities_are_not_expanded(self):
        laughs = b'<?xml version="1.0"?><!DOCTYPE system [<!ENTITY a "aaaaaaaaaa">'
        for i in range(10):
            laughs += f'<!ENTITY {chr(98 + i)} "{("&" + chr(97 + i) + ";") * 10}">'.encode()
        self.refuse_bytes(laughs + b']><system version="1">&k;</system>')

    def test_a_gigabyte_of_nesting_costs_no_memory(self):
        for opening in (b"<system version='1'>" + b"<cpu>" * 200000, b"[" * 1000000, b'{"a":' * 200000):
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            process = subprocess.Popen([support.BINARY, "topo", "--from", "-"],
                                       stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                                       env=support.clean_environment())
            sent = 0
            try:
                while sent < 1 << 30:
                    process.stdin.write(opening)
                    sent += len(opening)
                process.stdin.close()
            except BrokenPipeError: # refused early: that is right
                pass
            process.wait(timeout=300)
            self.assertEqual(process.returncode, 2, process.stderr.read())
            process.stderr.close()
            after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            limit_kib = 300 * 1024
            if "sanitize:" in run("--version")[1]: # a sanitizer keeps freed memory and shadows all
                limit_kib *= 4
            self.assertLess(max(before, after), limit_kib, "KiB resident")


class Environment(CliTest):
    def test_env_lists_every_option_and_its_origin(self):
        code, out, _ = run("env", env={"NVSHMEM_HCA_LIST": "mlx5_3"})
        self.assertEqual(code, 0)
        row = next(line for line in out.splitlines() if line.startswith("SHMEMCTL_HCA_LIST"))
        self.assertIn("mlx5_3", row)
        self.assertIn("NVSHMEM_HCA_LIST", row)

    def test_an_invalid_value_is_1_in_env_and_2_where_it_matters(self):
        env = {"SHMEMCTL_WORLD": "mars"}
        self.assertEqual(run("env", env=env)[0], 1)
        self.assert_refused(run("topo", "--from", NODE, env=env))

    def test_env_report_is_valid(self):
        document = report_of("env")[1]
        self.assertIn("SHMEMCTL_HCA_LIST", [row["name"] for row in document["options"]])


class JobsOnGpus(CliTest):
    """What docs/explanation/gpu.md says of all commands that use GPUs."""

    def test_every_job_chooses_heap_devices_and_path(self):
        for command in ("bringup", "bench", "moe"):
            with self.subTest(command=command):
                options = run(command, "--help")[1]
                for flag in ("--heap", "--gpus", "--device-path"):
                    self.assertRegex(options, rf"(?m)^ +{flag}\b")
                self.assertIn("--heap: unknown value mars", self.assert_refused(run(command, "--heap", "mars")))

    @unittest.skipUnless(os.environ.get("SHMEMCTL_FAKE_CUDA"), "a build without CUDA")
    def test_the_heap_that_is_given_is_the_one_that_is_made(self):
        for words in (("bench", "put", "--initiator", "gpu"), ("moe", "--backend", "gpu")):
            with self.subTest(words=words):
                code, _, err = run("run", "-n", "2", *words, "--heap", "none")
                self.assertEqual(code, 3, err)
                self.assertIn("SHMEMCTL_HEAP=none", err)


class Live(CliTest):
    def test_this_machine(self):
        code, out, err = run("topo")
        self.assertIn(code, (0, 1), err)
        self.assertTrue(out)
        code, out, err = run("check", "--level", "1", "--json", "-")
        self.assertIn(code, (0, 1, 3), err)
        document = json.loads(out)
        self.assertEqual(code, document["exit_code"])
        self.assertTrue(document["checks"])


if __name__ == "__main__":
    unittest.main()
