"""docs/tutorials/several-hosts.md and the Kubernetes example, step by step on two hosts."""
import re
import unittest

import hosts_support
from hosts_support import PATIENCE_S, SMALL, SOURCE, HostsTest, hydra, open_mpi, why_no_slurm

TUTORIAL = SOURCE / "docs" / "tutorials" / "several-hosts.md"
EXAMPLE = SOURCE / "docs" / "examples" / "kubernetes-pair.yaml"
NAMES = ("node1", "node2")


def missing(block):
    """Why a block cannot run on this machine, or None."""
    if "mpirun" in block and not open_mpi():
        return "no mpirun of Open MPI (apt install openmpi-bin)"
    if "mpiexec.hydra" in block and not hydra():
        return "no mpiexec.hydra (apt install mpich)"
    if "srun" in block or "sbatch" in block:
        return why_no_slurm()
    return None


class Tutorial(HostsTest):
    count = 2
    slurm = True
    hosts = {"hostnames": NAMES}

    def test_every_command(self):
        blocks = re.findall(r"^```sh\n(.*?)^```$", TUTORIAL.read_text(encoding="utf-8"), re.M | re.S)
        self.assertGreater(len(blocks), 5)
        for block in blocks:
            with self.subTest(block.splitlines()[0]):
                if reason := missing(block):
                    self.skipTest(reason)
                # Both hosts have this folder, as they would have a home.
                done = self.first.run("bash", "-ec", f"cd {self.out}\n{block}", timeout=PATIENCE_S, **SMALL)
                self.assertEqual(done.code, 0, done)
                self.assertNotIn("shmemctl: error:", done.err)
                self.assert_nothing_left()


class Kubernetes(HostsTest):
    """The container's script on two hosts that have the pods' names and the Service's."""
    count = 2
    hosts = {"hostnames": ("shmemctl-pair-0", "shmemctl-pair-1")}
    options = {"family": "4"}

    @classmethod
    def setUpClass(cls):
        try:
            import yaml
        except ImportError:
            raise unittest.SkipTest("no PyYAML (apt install python3-yaml)") from None
        cls.service, cls.job_document = yaml.safe_load_all(EXAMPLE.read_text(encoding="utf-8"))
        super().setUpClass()

    def test_the_service_leads_to_the_pods(self):
        job, pod = self.job_document, self.job_document["spec"]["template"]["spec"]
        self.assertEqual((self.service["kind"], job["kind"]), ("Service", "Job"))
        self.assertEqual(self.service["spec"]["selector"], {"job-name": job["metadata"]["name"]})
        self.assertEqual(self.service["metadata"]["name"], pod["subdomain"])
        self.assertEqual(self.service["spec"]["clusterIP"], "None")
        (container,) = pod["containers"]
        session = {one["name"]: one.get("value") for one in container["env"]}["SHMEMCTL_BOOTSTRAP_UID_SESSION_ID"]
        self.assertEqual(session, f"{job['metadata']['name']}-0.{pod['subdomain']}:"
                                  f"{self.service['spec']['ports'][0]['port']}")
        self.assertEqual({mount["name"] for mount in container["volumeMounts"]},
                         {volume["name"] for volume in pod["volumes"]})

    def test_the_container_s_script(self):
        (container,) = self.job_document["spec"]["template"]["spec"]["containers"]
        variables = {one["name"]: one.get("value", "of this test alone") for one in container["env"]}
        variables["PES_PER_POD"] = "2"
        script = container["args"][0].replace("/report/", f"{self.out}/")
        name = variables["SHMEMCTL_BOOTSTRAP_UID_SESSION_ID"].partition(":")[0]
        commands = []
        for index, host in enumerate(self.cluster.all):
            host.must_run("cannot name the pod", "sh", "-c", f"echo 10.77.0.1 {name} >>/etc/hosts")
            commands.append(host.start_command(*container["command"], script, JOB_COMPLETION_INDEX=index, **variables,
                                               **SMALL))
        for command in commands:
            done = command.wait(PATIENCE_S)
            self.assertEqual(done.code, 0, done)
        report = hosts_support.json.loads((self.out / "pair.json").read_text(encoding="utf-8"))
        self.assert_verified(report, ["shmemctl-pair-0", "shmemctl-pair-1"])
        self.assertEqual((report["job"]["pes"], report["job"]["nodes"]), (4, 2))
        self.assert_nothing_left()


if __name__ == "__main__":
    hosts_support.main()
