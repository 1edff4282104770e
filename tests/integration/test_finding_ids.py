"""Every finding id of the code is in docs/reference/findings.md, and every one there is in the code."""
import re
import unittest

from support import SOURCE

PAGE = SOURCE / "docs" / "reference" / "findings.md"
WORD = re.compile(r'"([a-z][a-z0-9]*(?:-[a-z0-9]+)+)"')
# Words of that shape in the files that make findings, and what they are.
NO_IDS = {
    "cases": {"all-to-all", "atomic-fetch-add", "fabric-latency", "fabric-nic", "fabric-pair", "gpu-link", "moe-cached-dispatch", "moe-combine", "moe-dispatch",
              "moe-round-trip", "put-latency", "put-pingpong", "put-signal-pingpong", "transport-put", "verbs-write"},
    "checks of doctor": {"pcie-acs"},
    "checks": {"bench-gpu", "buffer-check", "gpu-heap", "gpu-links", "gpu-paths", "self-test"},
    "fabrics": {"fat-tree"},
    "faults": {"moe-middle"},
    "groups": {"kernel-log"},
    "formats": {"hwloc-xml", "nccl-xml", "nvidia-smi"},
    "libraries": {"nccl-net", "nvidia-nvshmem", "nvshmem-host"},
    "messages of logs": {"nccl-ib-no-device", "nccl-libibverbs-missing", "nccl-network-socket"},
    "protocols": {"pmi-2"},
    "variants": {"what-if"},
}


def documented():
    """Ids of the page: a heading each. Those of doctor's checks, which are last, have a test of their own."""
    section = PAGE.read_text(encoding="utf-8").split("\n## Checks of doctor", 1)[0]
    return set(re.findall(r"^### ([a-z][a-z0-9]*(?:-[a-z0-9]+)+)$", section, re.MULTILINE))


def in_code():
    """{word: a file that has it}: of sources that make findings, and of the thresholds of counters."""
    found = {}
    for folder in ("src", "reports", "cli", "transports"):
        for path in (SOURCE / folder).rglob("*.cpp"):
            text = path.read_text()
            # doctor's findings have the ids of its checks.
            if path.parent.name == "reports" and path.name.endswith("_findings.cpp") or path.name == "reference.cpp":
                continue  # the tables, and the program that makes the page from them
            if "doctor" not in path.parts and re.search(r"\b(Severity::|Findings?\b)", text):
                found.update({word: path.relative_to(SOURCE) for word in WORD.findall(text)})
    rules = SOURCE / "src" / "instruments" / "hotspots" / "nic_thresholds.conf"
    for rule in re.findall(r"^rule .*", rules.read_text(), re.MULTILINE):
        found[rule.split()[4]] = rules.relative_to(SOURCE)
    jobs = (SOURCE / "src" / "instruments" / "check" / "acceptance.cpp").read_text()
    for job in re.findall(r'JobItem \w+\{\s*"([\w-]+)"', jobs):
        found["check-" + job] = "src/instruments/check/acceptance.cpp"
    return found


class FindingIds(unittest.TestCase):
    def test_the_page_has_every_id(self):
        no_ids = set().union(*NO_IDS.values())
        missing = {word: str(path) for word, path in in_code().items() if word not in documented() | no_ids}
        self.assertEqual(missing, {}, "add them to a table, reports/*_findings.cpp, or here to NO_IDS")

    def test_the_code_has_every_id_of_the_page(self):
        self.assertGreater(len(documented()), 60)
        self.assertEqual(documented() - set(in_code()), set())
        self.assertEqual(set().union(*NO_IDS.values()) - set(in_code()), set())


if __name__ == "__main__":
    unittest.main()
