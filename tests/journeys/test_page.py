"""The comparison of a page with what the program writes can fail."""
import unittest

from page import commands_of, difference, masked, measured_difference, too_wide, unaligned

BENCH = """\
shmemctl 0.1.0 (22148c5b5878, dirty), 2026-11-26T17:42:14.850Z
  command  shmemctl run -n 2 bench put
           --quick
  job      2 PEs on 1 node (vm), started by run, bootstrap local
  CPUs     PE 0 on CPU 0, PE 1 on CPU 1, pinned by launcher

put: PE 0 (vm) -> PE 1 (vm) by shm
  direction uni, pes 2, traffic pair; limit: memcpy of the same size
  size  window  min [us]  p50 [us]  p99 [us]  max [us]     Mop/s      GB/s  of limit  verified
     1      64  0.004849  0.005602         -  0.008546     178.5    0.1785     80.2%  passed

[!] bench-interference  PE 1 on CPU 1: it waited
    fix: measure on a machine that does nothing else

1 result (1 passed). 1 finding (1 warning).
""".splitlines()


class Difference(unittest.TestCase):
    def test_a_line_that_differs_is_found(self):
        self.assertEqual(difference(["a 1", "…", "b 2…"], ["a 1", "x", "y", "b 23"], unaligned), "")
        self.assertEqual(difference(["a…c"], ["a b c"], unaligned), "")
        self.assertEqual(difference(["a  1 us"], ["a 22.5 us"], masked), "")
        self.assertNotEqual(difference(["a 1"], ["a 2"], unaligned), "")
        self.assertNotEqual(difference(["a…c"], ["a b d"], unaligned), "")
        self.assertNotEqual(difference(["a 1"], ["b 1"], masked), "")
        self.assertNotEqual(difference(["a"], ["a", "b"], unaligned), "")
        self.assertNotEqual(difference(["a", "b"], ["a"], unaligned), "")
        self.assertNotEqual(difference(["…", "b"], ["a"], unaligned), "")

    def test_what_other_machines_say_is_no_difference(self):
        quiet = [line.replace("80.2%", "120.2%!").replace("(vm", "(HOST") for line in BENCH
                 if "bench-interference" not in line and "fix:" not in line]
        quiet[-1] = "8 GPUs, 8 NICs. 1 result (1 passed). No findings."
        quiet.insert(5, "  path     PE 0 (vm) -> PE 1 (vm) by shm")
        quiet.insert(-1, "p99 takes 100 samples: measure longer for it")
        self.assertEqual(measured_difference(BENCH, quiet), "")

    def test_what_the_program_changed_is_one(self):
        for old, new in (("command ", "invocation "), ("--quick", "--slow"), ("started by run", "started by mpirun"),
                         ("by shm", "by ucx"), ("p99 [us]", "p99.9"), ("     1 ", "     2 "), ("passed", "failed"),
                         ("uni", "bi"), ("bench-interference", "bench-corrupt"), ("1 result ", "2 results "),
                         ("        -  ", ""), ("shmemctl 0.1.0", "0.1.0")):
            changed = [line.replace(old, new) for line in BENCH]
            self.assertNotEqual(changed, BENCH, old)
            self.assertNotEqual(measured_difference(BENCH, changed), "", old)

    def test_wide_lines_are_found(self):
        self.assertEqual(too_wide(BENCH), [])
        self.assertEqual(too_wide(["put: " + "a sentence " * 20]), [])
        self.assertEqual(len(too_wide(["  size  " + "p50  " * 20])), 1)
        self.assertEqual(len(too_wide(["  1024  " + "1.25  " * 20 + "passed"])), 1)
        self.assertEqual(len(too_wide(["  job      " + "x" * 100])), 1)

    def test_commands_of_a_page(self):
        page = "x\n```console\n$ a \\\nb\nout\n$ c\n```\n```sh\nd\n```\n"
        self.assertEqual(commands_of(page), [("a \\\nb", ["out"]), ("c", []), ("d\n", None)])


if __name__ == "__main__":
    unittest.main()
