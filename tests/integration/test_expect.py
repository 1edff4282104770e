"""check --record-expect on a good machine, check --expect on others of its type."""
import json
import pathlib
import tempfile
import unittest

from support import CliTest, report_of, run
from test_hotspots import Tree


def expectation_findings(document):
    return [(f["id"], f["severity"], f["subject"]) for f in document["findings"] if f["id"].startswith("expected-")]


class Expect(CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.good = self.folder / "good"
        Tree(self.good)
        self.file = self.folder / "node.json"

    def record(self):
        return run("check", "--sysroot", self.good, "--record-expect", self.file)

    def compare(self, tree, *flags):
        return report_of("check", "--sysroot", tree, "--expect", self.file, *flags)

    def test_the_node_itself_and_one_like_it(self):
        code, out, err = self.record()
        self.assertEqual((code, err), (0, ""))
        self.assertIn(f"recorded 0 GPUs, 4 RDMA NICs and 0 versions in {self.file}", out)
        other = self.folder / "other"
        Tree(other, hostname="node8")
        for tree in (self.good, other):
            code, document = self.compare(tree)
            self.assertEqual(expectation_findings(document), [])
            self.assertEqual([c["status"] for c in document["checks"] if c["id"] == "expect"], ["pass"])

    def test_what_is_missing_or_differs_is_an_error(self):
        self.record()
        bad = self.folder / "bad"
        tree = Tree(bad, nics=3)
        tree.write("sys/class/infiniband/mlx5_1/ports/1/rate", "200 Gb/sec (4X HDR)")
        code, document = self.compare(bad)
        self.assertEqual(code, 1)
        self.assertEqual(expectation_findings(document),
                         [("expected-differs", "error", "mlx5_1"), ("expected-missing", "error", "mlx5_3")])
        self.assertEqual([c["status"] for c in document["checks"] if c["id"] == "expect"], ["fail"])

    def test_a_bare_machine_is_no_pass(self):
        self.record()
        bare = self.folder / "bare"
        Tree(bare, nics=0)
        code, document = self.compare(bare)
        self.assertEqual(code, 1)
        self.assertEqual([i for i, _, _ in expectation_findings(document)], ["expected-missing"] * 4)

    def test_a_record_is_not_overwritten_and_can_be_edited(self):
        self.record()
        self.assert_refused(self.record())
        self.assertEqual(run("check", "--sysroot", self.good, "--record-expect", self.file, "--force")[0], 0)
        document = json.loads(self.file.read_text(encoding="utf-8"))
        document["nics"] = [{"count": 4, "ports": [{"rate_Gbps": 200}]}]
        self.file.write_text(json.dumps(document), encoding="utf-8")
        self.assertEqual(len(expectation_findings(self.compare(self.good)[1])), 4)

    def test_it_is_a_part_that_can_be_chosen_and_left_out(self):
        self.record()
        bad = self.folder / "bad"
        Tree(bad, nics=3)
        code, document = self.compare(bad, "--only", "expect")
        self.assertEqual(code, 1)
        ran = {c["id"]: c["status"] for c in document["checks"]}
        self.assertEqual((ran["expect"], ran["topo"], ran["doctor"]), ("fail", "skipped", "skipped"))
        document = self.compare(bad, "--skip", "expect")[1]
        self.assertEqual(expectation_findings(document), [])
        self.assertEqual([c["status"] for c in document["checks"] if c["id"] == "expect"], ["skipped"])
        err = self.assert_refused(run("check", "--expect", self.file, "--only", "expct"))
        self.assertIn("did you mean expect?", err)
        err = self.assert_refused(run("check", "--only", "expect"))
        self.assertIn("--expect FILE", err)

    def test_mistakes_are_refused_before_anything_is_checked(self):
        self.assert_refused(run("check", "--sysroot", self.good, "--expect", self.file))
        self.file.write_text('{"expectation": 1, "nics": [{"nam": "mlx5_0"}]}', encoding="utf-8")
        err = self.assert_refused(run("check", "--sysroot", self.good, "--expect", self.file))
        self.assertIn("nics[0].nam", err)
        self.assertIn("did you mean name?", err)
        self.assert_refused(run("check", "--expect", self.file, "--record-expect", self.file))


if __name__ == "__main__":
    unittest.main()
