"""Settings and machines whose findings come with a fix: the fix is applied, and the tool run again."""
import re
import shlex
import subprocess
import unittest

from support import DATA, CliTest, report_of

ONE_IBP = """\tGPU0\tNIC0
GPU0\t X \tPIX
NIC0\tPIX\t X

NIC Legend:

  NIC0: ibp24s0
"""
# Four GPUs: InfiniBand near two of them, and an Ethernet NIC at the CPU.
IB_AND_ETHERNET = """\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tNIC2
GPU0\t X \tNV18\tNV18\tNV18\tPIX\tNODE\tNODE
GPU1\tNV18\t X \tNV18\tNV18\tNODE\tNODE\tNODE
GPU2\tNV18\tNV18\t X \tNV18\tNODE\tPIX\tNODE
GPU3\tNV18\tNV18\tNV18\t X \tNODE\tNODE\tNODE
NIC0\tPIX\tNODE\tNODE\tNODE\t X \tNODE\tNODE
NIC1\tNODE\tNODE\tPIX\tNODE\tNODE\t X \tNODE
NIC2\tNODE\tNODE\tNODE\tNODE\tNODE\tNODE\t X

NIC Legend:

  NIC0: ibp14s0
  NIC1: ibp71s0
  NIC2: rocep32s0f0
"""


def after_fixes(env, findings):
    """The environment of a shell into which every printed fix was pasted."""
    env = dict(env)
    for finding in findings:
        for command in finding["fix"].partition("  # ")[0].split("; "):
            words = shlex.split(command)
            for word in words[1:] if words[0] == "unset" else []:
                env.pop(word, None)
            for word in words[1:] if words[0] == "export" else []:
                name, _, value = word.partition("=")
                env[name] = value
    return env


class Fixes(CliTest):
    def findings(self, machine, *flags, env=None):
        code, document = report_of("topo", "--from", "-", *flags, stdin=machine.encode(), env=env or {})
        return code, {f["id"]: f for f in document["findings"]}, document

    def assert_healed(self, machine, *flags, env):
        _, before, _ = self.findings(machine, *flags, env=env)
        fixed = after_fixes(env, before.values())
        code, after, _ = self.findings(machine, *flags, env=fixed)
        worse = {i for i, f in after.items() if f["severity"] != "info"}
        self.assertEqual(worse, set(), f"{before} -> {fixed} -> {after}")
        self.assertEqual(code, 0)

    def test_a_remote_transport_that_nvshmem_does_not_know(self):
        env = {"NVSHMEM_REMOTE_TRANSPORT": "ibgda"}
        code, found, _ = self.findings(ONE_IBP, env=env)
        self.assertEqual(code, 1)
        self.assertEqual(found["remote-transport-unknown"]["severity"], "error")
        enabled = dict(env, NVSHMEM_IB_ENABLE_IBGDA="true")
        code, found, document = self.findings(ONE_IBP, env=enabled)
        self.assertEqual(code, 0)
        self.assertEqual(found["remote-transport-unknown"]["severity"], "warning")
        self.assertEqual(document["mapping"]["pes"][0]["nics"][0]["device"], "ibp24s0")
        for settings in (env, enabled):
            for version in ("3.4.5", "3.5.1", "3.7.0"):
                self.assert_healed(ONE_IBP, "--nvshmem-version", version, env=settings)

    def test_every_subcommand_reads_the_variable_alike(self):
        for value in ("IBRC", "Ucx", "LIBFABRIC", "libfabri"):
            env = {"NVSHMEM_REMOTE_TRANSPORT": value}
            self.assertEqual(self.findings(ONE_IBP, env=env)[0], 0, value)
            code, document = report_of("env", env=env)
            self.assertEqual((code, document["findings"]), (0, []), value)
        for command in (["topo", "--from", "-"], ["env"], ["doctor", "--only", "remote-transport-unknown"]):
            code, document = report_of(*command, stdin=ONE_IBP.encode(),
                                       env={"NVSHMEM_REMOTE_TRANSPORT": "ibgda"})
            self.assertEqual(code, 1)
            self.assertIn("remote-transport-unknown", [f["id"] for f in document["findings"]])

    def test_doctor_judges_this_tools_own_variable_too(self):
        env = {"SHMEMCTL_REMOTE_TRANSPORT": "libfabrik", "NVSHMEM_REMOTE_TRANSPORT": "ibrc"}
        code, document = report_of("doctor", "--only", "remote-transport-unknown", env=env)
        self.assertEqual(code, 1)
        (finding,) = document["findings"]
        self.assertEqual((finding["id"], finding["severity"]), ("remote-transport-unknown", "error"))
        self.assertIn("SHMEMCTL_REMOTE_TRANSPORT=libfabrik", finding["message"])
        self.assertEqual(finding["fix"], "export SHMEMCTL_REMOTE_TRANSPORT=libfabric")
        code, document = report_of("env", env=env)
        self.assertEqual([f["id"] for f in document["findings"] if f["severity"] == "error"], ["env-invalid"])

    def test_deepeps_worlds_have_ibgda(self):
        for world in ("deepep-ll", "deepep-ht"):
            code, found, document = self.findings(ONE_IBP, "--world", world, "--nvshmem-version", "3.4.5")
            self.assertEqual(code, 1)
            self.assertEqual(document["mapping"]["table"], [])
            self.assertIn("NVSHMEM_HCA_PREFIX", found["mapping-empty"]["message"])
            self.assert_healed(ONE_IBP, "--world", world, "--nvshmem-version", "3.4.5", env={})

    def test_a_conflicting_hca_prefix(self):
        env = {"NVSHMEM_IB_ENABLE_IBGDA": "1", "NVSHMEM_HCA_PREFIX": "mlx5"}
        for version in ("3.3.20", "3.4.5", "3.5.1", "3.7.0"):
            self.assert_healed(ONE_IBP, "--nvshmem-version", version, env=env)

    def test_a_management_nic_is_off_the_fabric_in_topo_and_in_sim(self):
        env = {"NVSHMEM_ENABLE_NIC_PE_MAPPING": "1"}
        code, found, _ = self.findings(IB_AND_ETHERNET, env=env)
        self.assertIn("nic-off-fabric", found)
        # One set of lines: no two fixes say different things of one variable.
        said = {}
        for finding in found.values():
            for name, value in re.findall(r"(NVSHMEM_\w+)=(\S+?)(?:;|\s|$)", finding["fix"]):
                self.assertEqual(said.setdefault(name, value), value)
        self.assert_healed(IB_AND_ETHERNET, env=env)
        code, document = report_of("sim", "--from", "-", "--nodes", 2, "--nic-gbits", 400, "--pattern", "all-to-all",
                                   stdin=IB_AND_ETHERNET.encode(), env=env)
        self.assertEqual(found["nic-off-fabric"]["message"],
                         {f["id"]: f for f in document["findings"]}["nic-off-fabric"]["message"])

    def test_a_collapse_is_fixed_by_one_setting_where_the_release_has_one(self):
        pairs = (DATA / "nccl" / "pairs-8gpu-8nic.xml").read_text()
        _, found, _ = self.findings(pairs, "--world", "deepep-ht", "--nvshmem-version", "3.7.0")
        self.assertEqual(found["mapping-collapse"]["fix"],
                         "export NVSHMEM_NETDEVS_POLICY=EXTERNAL_SHARING_PCIE_SWITCH_NIC_EXCLUSIVE")
        self.assert_healed(pairs, "--world", "deepep-ht", "--nvshmem-version", "3.7.0", env={})

    def test_a_line_for_each_rank_sets_nothing_where_no_rank_runs_it(self):
        pairs = (DATA / "nccl" / "pairs-8gpu-8nic.xml").read_text()
        _, found, _ = self.findings(pairs, "--world", "deepep-ht", "--nvshmem-version", "3.4.5")
        fix = found["mapping-collapse"]["fix"]
        self.assertIn("  # for bash in each rank's own process", fix)

        def pasted(**variables):
            return subprocess.run(["bash", "-c", fix + '\necho "$NVSHMEM_HCA_LIST"'], env=variables, text=True,
                                  capture_output=True)

        step = {"SLURM_STEP_ID": "0", "SLURM_LOCALID": "0"}
        for variable, others in (("OMPI_COMM_WORLD_LOCAL_RANK", {}), ("SLURM_LOCALID", step), ("LOCAL_RANK", {}),
                                 ("LOCAL_RANK", step), ("LOCAL_RANK", {"OMPI_COMM_WORLD_LOCAL_RANK": "0"})):
            lists = [pasted(**{**others, variable: str(rank)}).stdout for rank in range(8)]
            self.assertEqual(lists, [f"mlx5_{rank}:1\n" for rank in range(8)], (variable, others))
        for variables, words in (({}, "run this in each rank"),
                                 ({"SLURM_LOCALID": "0", "SLURM_PROCID": "0"}, "run this in each rank"),  # a batch script
                                 ({"LOCAL_RANK": "8"}, "no NIC for this rank")):
            done = pasted(**variables)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stdout, "")
            self.assertIn(words, done.stderr)

    def test_a_release_that_nobody_knows(self):
        code, found, _ = self.findings(ONE_IBP, "--nvshmem-version", "9.9.9")
        self.assertEqual(code, 0)
        self.assertEqual(found["nvshmem-version-unknown"]["severity"], "warning")
        self.assertNotIn("nvshmem-version-unknown", self.findings(ONE_IBP, "--nvshmem-version", "3.7.1")[1])


if __name__ == "__main__":
    unittest.main()
