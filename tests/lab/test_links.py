"""ibrc between two machines of the lab whose links lose, delay, cut and go down in mid-sweep."""
import pathlib

import lab_support

SCRIPT = pathlib.Path(__file__).parent / "guest_links.sh"
WAY = "PE 1 on lab1 (host lab0, PE 0, device rxe1, port 1)"


class Links(lab_support.Jobs):
    words = ("--machines", 2, "--pes", 1, "--hcas", 2, "--", "sh", SCRIPT, lab_support.BINARY)

    def assert_all_say(self, name, *words):
        """The PE that met the fault, and the other one."""
        for machine in (0, 1):
            self.assert_refused(f"{name}.{machine}", 3, *words)
        self.assert_incomplete(f"{name}.0", 3)

    def test_a_slow_nic_is_a_finding(self):
        report = self.assert_verified("slow.0")
        findings = [row for row in report["findings"] if row["id"] == "slow-nic"]
        self.assertEqual([row["subject"] for row in findings], ["lab0 rxe1:1"])
        self.assertRegex(findings[0]["message"],
                         r"at [0-9.]+ MB/s through rxe1:1 of lab0, and at [0-9.]+ MB/s through rxe0:1")
        self.assertIn("HCA_LIST=^rxe1", findings[0]["fix"])

    def test_loss_is_survived(self):
        report = self.assert_verified("loss.0")
        self.assertEqual({row["case"] for row in report["results"]}, {"put", "get"})
        self.assertRegex(self.text("netem"), r"netem [^\n]*loss 1%\n[^\n]*\(dropped [1-9]")
        self.assertNotIn("slow-nic", {row["id"] for row in report["findings"]})

    def test_a_short_outage_of_the_path_is_survived(self):
        self.assert_verified("mended.0")
        self.assert_ended("mended.1", 0)
        self.assertNotEqual(self.text("dropped.mended"), "0\n")

    def test_a_path_with_a_smaller_mtu(self):
        self.assert_all_say("large", "put 65536 bytes to " + WAY, "transport retry counter exceeded", "did not answer")
        self.assertIn("a smaller MTU than 4096 bytes: set SHMEMCTL_IB_MTU lower",
                      self.text("large.0.errors"))
        self.assert_verified("smaller.0")

    def test_a_peer_that_does_not_answer_is_named_after_the_retries(self):
        # Either has requests under way: PE 1 the atomics of a barrier.
        line = (r"shmemctl: error: .*(?:PE 1 on lab1 \(host lab0, PE 0|PE 0 on lab0 \(host lab1, PE 1), "
                r"device rxe1, port 1\): transport retry counter exceeded: "
                r"PE [01] on lab[01] did not answer for 7\.5 s\nshmemctl: fix: ")
        for name in ("silent.0", "silent.1"):
            self.assert_ended(name, 3)
            self.assertRegex(self.text(name + ".errors"), line)
        self.assert_incomplete("silent.0", 3)

    def test_a_peer_that_was_killed_is_named(self):
        self.assert_refused("killed.0", 3, "PE 1 (host lab1) was lost in phase bench get 64K")
        self.assert_incomplete("killed.0", 3)
        self.assert_ended("killed.1", 137)

    def test_a_port_that_goes_down_is_named_by_all(self):
        self.assert_all_say("down", WAY, "local QP operation error", "the port went down once")
        self.assertIn("port 1 of rxe1 is down", self.text("down.0.errors"))

    def test_a_port_that_comes_back_in_mid_sweep(self):
        """Whether something was to be sent in that moment decides. Who survives it is told of the link; where
        Soft-RoCE neither completes nor refuses what was under way, the deadline names whom it was for."""
        self.assertIn("port 1 of rxe1 is down", self.text("flap.0.errors"))
        if self.text("flap.0") == "3\n":
            self.assert_all_say("flap", WAY, "the port went down once")
            return
        if self.text("flap.0") == "124\n":
            self.assert_refused("flap.0", 124, "PE 0", "waits for its network", "PE 1 (host lab1)")
            self.assert_ended("flap.1", 124)
            return
        report = self.report("flap.0", 1)
        self.assertEqual({row["verified"] for row in report["results"]}, {"passed"})
        self.assertIn(("link-flapping", "error"), {(each["id"], each["severity"]) for each in report["findings"]})

    def test_a_port_that_came_back_works(self):
        self.assert_verified("again.0")
        self.assert_ended("again.1", 0)

    def test_a_port_that_is_down_is_not_passed_over(self):
        """There is another one, which HCA_LIST does not name."""
        for machine in (0, 1):
            fix = self.assert_refused(f"gone.{machine}", 3, "HCA_LIST", "lab1", "PE 1",
                                      "rxe1:1 is DOWN")
            self.assertIn("bring the link up", fix)


if __name__ == "__main__":
    lab_support.main()
