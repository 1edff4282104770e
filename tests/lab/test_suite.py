"""The suite of all transports over ibrc's real devices: with one NIC and with two."""
import pathlib

import lab_support

PROGRAM = pathlib.Path(lab_support.BINARY).parent / "test_transports"


# WordsAreSeenWhole is left out: Soft-RoCE writes with the kernel's memcpy, which makes no promise
# about words, and a reader on the other processor has seen one torn.
class Suite(lab_support.Jobs):
    words = ("--hcas", 2, "--env", "SHMEMCTL_TRANSPORT=ibrc", "--", PROGRAM,
             "--gtest_filter=Ibrc/Conformance.*/ibrc*-*.WordsAreSeenWhole/*")

    def test_the_suite_of_all_transports(self):
        text = self.result.stdout[0]
        self.assertEqual(self.result.exit_codes, [0], text[-4000:] + self.result.stderr[0])
        for name in ("TargetNeedNotCall/ibrc ", "TargetNeedNotCall/ibrc_two_nics ",
                     "KilledPeerIsNamedByAll/ibrc "):
            self.assertIn(f"OK ] Ibrc/Conformance.{name}", text)


if __name__ == "__main__":
    lab_support.main()
