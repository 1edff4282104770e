"""inspect: running processes, live and from recorded trees."""
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from support import BINARY, CliTest, clean_environment, report_of, run

LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")


def elf(texts, soname="libtest.so.1", defined=(), needed=()):
    """The bytes of a shared library with these texts and symbol versions."""
    strings, names = bytearray(b"\0"), bytearray(b"\0")

    def add(table, text):
        at = len(table)
        table.extend(text.encode() + b"\0")
        return at

    rodata = b"".join(text.encode() + b"\0" for text in texts)
    dynamic = struct.pack("<qQ", 14, add(strings, soname)) + struct.pack("<qQ", 0, 0)
    definitions = b""
    for index, version in enumerate(defined):
        definitions += struct.pack("<HHHHIII", 1, 0, index + 2, 1, 0, 20, 0 if index + 1 == len(defined) else 28)
        definitions += struct.pack("<II", add(strings, version), 0)
    needs = b""
    for index, (file, versions) in enumerate(needed):
        more = 0 if index + 1 == len(needed) else 16 + 16 * len(versions)
        needs += struct.pack("<HHIII", 1, len(versions), add(strings, file), 16, more)
        for number, version in enumerate(versions):
            needs += struct.pack("<IHHII", 0, 0, 2, add(strings, version), 0 if number + 1 == len(versions) else 16)
    sections = [["", 0, b""], [".shstrtab", 3, b""], [".dynstr", 3, bytes(strings)], [".rodata", 1, rodata],
                [".dynamic", 6, dynamic], [".gnu.version_d", 0x6ffffffd, definitions],
                [".gnu.version_r", 0x6ffffffe, needs]]
    places = [0] + [add(names, section[0]) for section in sections[1:]]
    sections[1][2] = bytes(names)
    content = table = b""
    for place, (_, kind, part) in zip(places, sections):
        table += struct.pack("<IIQQQQIIQQ", place, kind, 0, 0, 64 + len(content), len(part), 2, 0, 0, 0)
        content += part
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, 64 + len(content), 0, 64, 0, 0, 64, len(sections), 1)
    return header + content + table


class RecordedNode:
    """A folder with a /proc of invented processes, and the libraries that they have mapped."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.inodes = {}
        self.write("etc/passwd", "ann:x:1000:1000::/home/ann:/bin/sh\n")

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def library(self, path, content):
        self.write(path.lstrip("/"), content)
        return path

    def process(self, pid, libraries, environment=(), name="python3", parent=1, state="S", links=()):
        folder = f"proc/{pid}"
        maps = ""
        for path in libraries:
            inode = self.inodes.setdefault(path, len(self.inodes) + 100)
            start = 0x7f0000000000 + inode * 0x10000
            maps += f"{start:x}-{start + 0x1000:x} r-xp 00000000 fd:01 {inode}  {path}\n"
        stat = f"{pid} ({name}) {state} {parent} 1 1 0 -1 0 1 2 3 4 150 50 0 0 20 0 1 0 5 1 2\n"
        for file in ("stat", f"task/{pid}/stat"):
            self.write(f"{folder}/{file}", stat)
        self.write(f"{folder}/status", f"Name:\t{name}\nUid:\t1000\t1000\t1000\t1000\nSeccomp:\t2\nNoNewPrivs:\t1\n")
        self.write(f"{folder}/cmdline", "python3\0train.py\0--token\0secret123\0")
        self.write(f"{folder}/environ", "".join(f"{variable}\0" for variable in environment))
        self.write(f"{folder}/maps", maps)
        self.write(f"{folder}/limits", "Max locked memory         65536                65536                bytes\n")
        self.write(f"{folder}/task/{pid}/wchan", "futex_wait_queue")
        self.write(f"{folder}/task/{pid}/syscall", "202 0x1")
        for link, target in links:
            path = self.folder / folder / link
            path.parent.mkdir(parents=True, exist_ok=True)
            os.symlink(target, path)


class NodeOfPairs(RecordedNode):
    """Four switches with a GPU and a NIC each, half of them on each of two sockets; what netlink and NVML
    would answer is in texts below /shmemctl."""

    def __init__(self, folder, hostname="node7"):
        super().__init__(folder)
        self.write("proc/sys/kernel/hostname", f"{hostname}\n")
        self.queue_pairs = self.gpus = ""
        for index in range(4):
            bus, numa = 0x10 * (index + 1), index // 2
            port = f"sys/devices/pci0000:{bus:02x}/0000:{bus:02x}:01.0"
            self.function(port, 0x060400, 0x8086, numa)
            self.function(f"{port}/0000:{bus + 1:02x}:00.0", 0x030200, 0x10de, numa)
            nic = f"{port}/0000:{bus + 1:02x}:01.0"
            self.function(nic, 0x020700, 0x15b3, numa)
            hca = f"{nic}/infiniband/mlx5_{index}"
            for name, text in (("state", "4: ACTIVE"), ("rate", "400 Gb/sec (4X NDR)"), ("link_layer", "InfiniBand"),
                               ("lid", "0x1")):
                self.write(f"{hca}/ports/1/{name}", f"{text}\n")
            self.write(f"{hca}/node_type", "1: CA\n")
            self.link(f"sys/class/infiniband/mlx5_{index}", f"../../../{hca}")
            self.link(f"{hca}/device", f"../../../0000:{bus + 1:02x}:01.0")
            self.gpus += f"gpu {index} pci 0000:{bus + 1:02x}:00.0 uuid GPU-{index}\n"

    def function(self, path, kind, vendor, numa):
        for name, text in (("class", f"0x{kind:06x}"), ("vendor", f"0x{vendor:04x}"), ("device", "0x1021"),
                           ("numa_node", str(numa))):
            self.write(f"{path}/{name}", f"{text}\n")
        self.link(f"sys/bus/pci/devices/{path.rpartition('/')[2]}", f"../../../../{path}")

    def link(self, path, target):
        link = self.folder / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)

    def rank(self, rank, libraries, gpu, nic, *environment):
        """PID 100 + rank, which uses a GPU and has two connected queue pairs on a NIC."""
        pid = 100 + rank
        self.process(pid, libraries, [f"RANK={rank}", *environment])
        self.gpus += f"gpu {gpu} pid {pid} used-bytes 20000000000 busy-percent 90\n"
        for number in (2 * pid, 2 * pid + 1):
            self.queue_pairs += (f"link {nic}/1 lqpn {number} rqpn {number + 1000} type RC state RTS rq-psn 0 sq-psn 0 "
                                 f"path-mig-state MIGRATED pid {pid} comm python3\n")
        self.write("shmemctl/rdma/qp", self.queue_pairs)
        self.write("shmemctl/gpu-processes", self.gpus)


class Inspect(CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, code, **variables):
        """A Python process that runs `code`, and has said so."""
        process = subprocess.Popen([sys.executable, "-c", code + "\nprint('ready', flush=True)\nimport time\ntime.sleep(300)"],
                                   stdout=subprocess.PIPE, env=clean_environment(**variables))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def found(self, document, finding):
        return [each for each in document["findings"] if each["id"] == finding]


class Live(Inspect):
    def test_a_process_that_sleeps(self):
        process = self.start("", RANK="3", NCCL_DEBUG="INFO")
        code, document = report_of("inspect", process.pid)
        self.assertEqual((code, document["findings"]), (0, []))
        entry, = document["processes"]
        self.assertEqual((entry["pid"], entry["rank"], entry["rank_source"]), (process.pid, 3, "RANK"))
        self.assertEqual(entry["activity"]["state"], "waits")
        self.assertLess(entry["activity"]["cpus"], 0.5)
        self.assertEqual(pathlib.Path(entry["exe"]).resolve(), pathlib.Path(sys.executable).resolve())
        self.assertEqual(entry["command"][0], sys.executable)
        variable, = [each for each in entry["environment"] if each["name"] == "NCCL_DEBUG"]
        self.assertEqual((variable["value"], variable["status"]), ("INFO", "unchecked"))
        self.assertIsNone(process.poll()) # it is as it was
        code, out, err = run("inspect", process.pid, "--verbose")
        self.assertEqual((code, err), (0, ""), out)
        self.assertRegex(out, rf"(?m)^ *{process.pid} +3 +python")

    def test_a_process_that_computes(self):
        process = subprocess.Popen([sys.executable, "-c", "print('ready', flush=True)\nwhile True: pass"],
                                   stdout=subprocess.PIPE, env=clean_environment())
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        process.stdout.readline()
        states = set()
        for _ in range(30): # on a machine that does more, it may get no CPU for a while
            _, document = report_of("inspect", process.pid)
            states.add(document["processes"][0]["activity"]["state"])
            if "runs" in states:
                break
        self.assertIn("runs", states)

    def test_a_stopped_process(self):
        process = self.start("")
        process.send_signal(signal.SIGSTOP)
        for _ in range(50):
            if pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T":
                break
            time.sleep(0.1)
        _, document = report_of("inspect", process.pid)
        self.assertEqual(document["processes"][0]["activity"]["state"], "stopped")

    @unittest.skipUnless((LIBRARIES / "libfabric.so.1").exists(), "libfabric is not installed")
    def test_two_copies_of_one_library(self):
        copy = self.folder / "libfabric.so.1"
        shutil.copy(LIBRARIES / "libfabric.so.1", copy)
        process = self.start(f"import ctypes\nctypes.CDLL('libfabric.so.1')\nctypes.CDLL({str(copy)!r})",
                             FI_PROVIDR="tcp", FI_PROVIDER="tcp")
        code, document = report_of("inspect", process.pid)
        self.assertEqual(code, 0) # warnings
        twice, = self.found(document, "library-twice")
        self.assertIn(str(copy), twice["message"])
        self.assertIn("libfabric.so.1", twice["message"].replace(str(copy), ""))
        libraries = [each for each in document["processes"][0]["libraries"] if each["kind"] == "libfabric"]
        self.assertEqual(len(libraries), 2)
        self.assertEqual(len({each["version"] for each in libraries}), 1)
        self.assertTrue(all(each["version"] for each in libraries), libraries)
        ignored, = self.found(document, "env-ignored")
        self.assertIn("did you mean FI_PROVIDER?", ignored["fix"])
        # The file is removed while it is mapped.
        copy.unlink()
        _, document = report_of("inspect", process.pid)
        self.assertIn("deleted", {each["file"] for each in document["processes"][0]["libraries"]})

    @unittest.skipUnless((LIBRARIES / "libucp.so.0").exists(), "UCX is not installed")
    def test_variables_of_ucx(self):
        process = self.start("import ctypes\nctypes.CDLL('libucp.so.0')", UCX_TLS="tcp", UCX_TLSS="tcp",
                             UCX_LOG_LEVEL="warn")
        _, document = report_of("inspect", process.pid)
        status = {each["name"]: each["status"] for each in document["processes"][0]["environment"]}
        self.assertEqual((status["UCX_TLS"], status["UCX_LOG_LEVEL"], status["UCX_TLSS"]), ("known", "known", "ignored"))

    def test_a_process_that_ended(self):
        process = self.start("")
        process.kill()
        process.wait()
        err = self.assert_refused(run("inspect", process.pid))
        self.assertIn("no such process", err)
        other = self.start("")
        _, document = report_of("inspect", process.pid, other.pid)
        skipped, = [each for each in document["processes"] if each["pid"] == process.pid]
        self.assertEqual(skipped["skipped"], [{"what": "process", "reason": "no such process"}])

    def test_bad_calls(self):
        for arguments in (("abc",), ("0",), ("-5x",), ("99999999999",), (), ("1", "--all"), ("--user", "no-such-user-here"),
                          ("1", "--duration", "5"), ("--all", "--sysroot", "/nonexistent")):
            with self.subTest(arguments):
                self.assert_refused(run("inspect", *arguments))

    def test_watch_repeats(self):
        process = self.start("")
        code, out, err = run("inspect", process.pid, "--watch", "0.3", "--duration", "1")
        self.assertEqual((code, err), (0, ""))
        self.assertGreaterEqual(out.count(f"{process.pid} "), 2, out)

    def test_the_window_has_rows_of_counters(self):
        process = self.start("")
        _, document = report_of("inspect", process.pid, "--window", "0.3")
        for row in document["nic_counters"]:
            self.assertIn(row["counter"], ("sent_bytes", "received_bytes"))
        _, document = report_of("inspect", process.pid)
        self.assertEqual(document["nic_counters"], [])


class Recorded(Inspect):
    def setUp(self):
        super().setUp()
        self.node = RecordedNode(self.folder / "node")

    def inspect(self, *arguments):
        return report_of("inspect", *arguments, "--sysroot", self.node.folder)

    def test_case_one_the_order_of_queue_pairs(self):
        site = "/opt/venv/lib/python3.12/site-packages"
        host = self.node.library(f"{site}/nvidia/nvshmem/lib/libnvshmem_host.so.3",
                                 elf(["NVSHMEM v3.5.19", "IB_GID_INDEX"]))
        deep_ep = self.node.library(f"{site}/deep_ep_cpp.so", elf(["NVSHMEM v3.4.5", "nvshmemi_ibgda_device_state_d"]))
        self.node.write(f"{site[1:]}/nvidia_nvshmem_cu12-3.5.19.dist-info/RECORD",
                        "nvidia/nvshmem/lib/libnvshmem_host.so.3,sha256=x,1\n")
        for rank in range(8):
            self.node.process(100 + rank, [host, deep_ep], [f"RANK={rank}", "NVSHMEM_IB_GID_INDX=3"])
        code, document = self.inspect("--all")
        self.assertEqual(code, 1)
        layout, = self.found(document, "nvshmem-qp-layout")
        self.assertEqual(layout["subject"], "PID 100-107 (python3)")
        for words in (host, deep_ep, "3.5.19", "3.4.5"):
            self.assertIn(words, layout["message"])
        self.assertIn("pip install nvidia-nvshmem-cu12==3.4.5", layout["fix"])
        self.assertEqual(len(self.found(document, "nvshmem-version-split")), 1)
        ignored, = self.found(document, "env-ignored")
        self.assertIn("did you mean NVSHMEM_IB_GID_INDEX?", ignored["fix"])
        entry = document["processes"][0]
        self.assertEqual(entry["libraries"][0]["owner"], "nvidia-nvshmem-cu12 3.5.19")
        self.assertEqual(entry["rights"]["seccomp"], "filter")
        self.assertNotIn("secret123", json.dumps(document))
        file = self.folder / "r.json"
        run("inspect", "--all", "--sysroot", self.node.folder, "--json", file)
        self.assertEqual(run("report", "validate", file)[0], 0)
        shown = run("report", "show", file)[1]
        self.assertRegex(shown, r"(?m)^nvshmem-host +3\.5\.19 +nvidia-nvshmem-cu12 3\.5\.19 +not compared +\S+ +100-107$")

    def test_healthy_processes_have_no_findings(self):
        host = self.node.library("/opt/libnvshmem_host.so.3", elf(["NVSHMEM v3.4.5", "IB_GID_INDEX"]))
        deep_ep = self.node.library("/opt/deep_ep_cpp.so", elf(["NVSHMEM v3.4.5", "nvshmemi_ibgda_device_state_d"]))
        nccl = self.node.library("/opt/libnccl.so.2", elf(["NCCL version 2.21.5", "NCCL_DEBUG", "MLX5_1.24"]))
        mlx5 = self.node.library("/opt/libmlx5.so.1.24.44.0",
                                 elf([], soname="libmlx5.so.1", defined=["MLX5_1.0", "MLX5_1.24"]))
        for rank in range(2):
            self.node.process(100 + rank, [host, deep_ep, nccl, mlx5],
                              [f"RANK={rank}", "NVSHMEM_IB_GID_INDEX=3", "NCCL_DEBUG=INFO", "NVSHMEM_HOME=/x"])
        code, document = self.inspect("--all")
        self.assertEqual((code, document["findings"]), (0, []))

    def test_the_rank_that_compiles(self):
        nccl = self.node.library("/opt/libnccl.so.2", elf(["NCCL version 2.28.3"]))
        for rank in range(4):
            self.node.process(100 + rank, [nccl], [f"RANK={rank}", "MASTER_ADDR=a", "MASTER_PORT=29500"])
        self.node.process(200, ["/usr/bin/nvcc"], name="nvcc", parent=102)
        self.node.process(201, ["/usr/bin/ptxas"], name="ptxas", parent=200, state="R")
        code, document = self.inspect("--user", "ann")
        self.assertEqual(code, 0)
        awaited, = self.found(document, "rank-awaited")
        self.assertEqual(awaited["severity"], "warning")
        self.assertIn("rank 2, PID 102 (python3), still compiles: nvcc (PID 200), ptxas (PID 201)", awaited["message"])

    def test_a_symbol_version_that_is_missing(self):
        nccl = self.node.library("/opt/libnccl.so.2", elf(["NCCL version 2.28.3", "MLX5_1.25"]))
        mlx5 = self.node.library("/usr/lib/libmlx5.so.1.24.44.0",
                                 elf([], soname="libmlx5.so.1", defined=["MLX5_1.0", "MLX5_1.24"]))
        self.node.process(100, [nccl, mlx5])
        _, document = self.inspect("100")
        missing, = self.found(document, "symbol-missing")
        # a text in the file: the library asks by dlvsym()
        self.assertEqual(missing["severity"], "info")
        for words in (nccl, mlx5, "MLX5_1.25"):
            self.assertIn(words, missing["message"])

    def test_a_symbol_version_that_a_linked_library_lacks(self):
        plugin = self.node.library("/opt/nvshmem_transport_ibgda.so.3", elf(["x"], needed=[("libmlx5.so.1", ["MLX5_1.25"])]))
        mlx5 = self.node.library("/usr/lib/libmlx5.so.1.24.44.0",
                                 elf([], soname="libmlx5.so.1", defined=["MLX5_1.0", "MLX5_1.24"]))
        self.node.process(100, [plugin, mlx5])
        _, document = self.inspect("100")
        missing, = self.found(document, "symbol-missing")
        self.assertEqual(missing["severity"], "error")

    def test_one_nic_for_all(self):
        for index in range(2):
            self.node.write(f"sys/class/infiniband/mlx5_{index}/ports/1/state", "4: ACTIVE\n")
            self.node.write(f"sys/class/infiniband_verbs/uverbs{index}/ibdev", f"mlx5_{index}\n")
        nccl = self.node.library("/opt/libnccl.so.2", elf(["NCCL version 2.28.3"]))
        for rank in range(2):
            self.node.process(100 + rank, [nccl], [f"RANK={rank}"], links=[("fd/5", "/dev/infiniband/uverbs0")])
        _, document = self.inspect("--all")
        self.assertEqual(document["processes"][0]["rdma_devices"], ["mlx5_0"])
        one, = self.found(document, "nic-one-of-many")
        self.assertEqual(one["subject"], "mlx5_0")

    def test_tcp_though_there_is_rdma(self):
        self.node.write("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n")
        nccl = self.node.library("/opt/libnccl.so.2", elf(["NCCL version 2.28.3"]))
        self.node.process(100, [nccl], links=[("fd/5", "socket:[77]")])
        self.node.write("proc/100/net/tcp",
                        "   0: 0A00000A:1F90 0B00000A:C350 01 00000000:00000000 00:00000000 0 0 0 77\n")
        _, document = self.inspect("100")
        fallback, = self.found(document, "tcp-fallback")
        self.assertIn("10.0.0.11:50000", fallback["message"])

    def test_what_is_missing_is_skipped(self):
        self.node.process(100, [])
        for name in ("environ", "maps", "limits"):
            (self.node.folder / "proc/100" / name).unlink()
        code, out, err = run("inspect", "100", "--sysroot", self.node.folder)
        self.assertEqual((code, err), (0, ""))
        self.assertIn("skipped: environ of PID 100: No such file or directory", out)

    def test_odd_and_hostile_files(self):
        path = "/opt/libnccl.so.2\\012\x1b[31m (deleted)"
        self.node.process(100, [path, "/opt/libnccl.so.2", "/opt/libmlx5.so.1"], ["NCCL_\x1b[2J=\x1b[31m", "NCCL_X=\xff"])
        self.node.write("opt/libnccl.so.2", b"\x7fELF" + os.urandom(5000))
        self.node.write("opt/libmlx5.so.1", b"")
        code, out, err = run("inspect", "100", "--sysroot", self.node.folder, "--verbose")
        self.assertIn(code, (0, 1), err)
        self.assertNotIn("\x1b", out + err)


class Paths(Inspect):
    """NICs that processes really use, of a node whose answers of netlink and NVML are recorded."""

    def setUp(self):
        super().setUp()
        self.node = NodeOfPairs(self.folder / "node")
        self.nvshmem = self.node.library("/opt/libnvshmem_host.so.3", elf(["NVSHMEM v3.4.5", "HCA_LIST"]))
        self.rdma_core = self.node.library("/opt/libibverbs.so.1.14.44.0", elf([]))

    def inspect(self, *arguments):
        return report_of("inspect", *arguments, "--sysroot", self.node.folder)

    def ids(self, document):
        return sorted((each["id"], each["subject"]) for each in document["findings"])

    def test_each_rank_next_to_its_gpu(self):
        for rank in range(4):
            self.node.rank(rank, [self.nvshmem], rank, f"mlx5_{rank}")
        code, document = self.inspect("--all")
        self.assertEqual((code, document["findings"]), (0, []))
        entry = document["processes"][2]
        self.assertEqual(entry["rdma_devices"], ["mlx5_2"])
        self.assertEqual(entry["queue_pairs"], [{"device": "mlx5_2", "port": 1, "type": "RC", "state": "RTS",
                                                 "numbers": [204, 205], "remote_numbers": [1204, 1205]}])
        self.assertEqual(entry["gpus"], [{"index": 2, "pci": "0000:31:00.0", "source": "NVML", "visible_index": 2,
                                          "used_bytes": 20000000000, "busy_percent": 90}])
        self.assertEqual(entry["expected_ports"], [{"by": "NVSHMEM 3.4.5, world node", "ports": ["mlx5_2:1"]}])
        file = self.folder / "r.json"
        run("inspect", "--all", "--sysroot", self.node.folder, "--json", file)
        self.assertEqual(run("report", "validate", file)[0], 0)
        shown = run("report", "show", file)[1]
        self.assertRegex(shown, r"(?m)^102 +mlx5_2:1 +RC +RTS +2 +204-205 +1204-1205 +mlx5_2:1 \(NVSHMEM 3\.4\.5, world node\)")
        self.assertRegex(shown, r"(?m)^102 +2 +0000:31:00\.0 +2 +20 +90%")

    def test_a_far_nic_that_nothing_explains(self):
        self.node.rank(0, [self.nvshmem], 0, "mlx5_0")
        self.node.rank(1, [self.nvshmem], 1, "mlx5_3")
        code, document = self.inspect("--all")
        self.assertEqual(code, 0)
        self.assertEqual(self.ids(document), [("mapping-differs", "PID 101 (rank 1)"), ("nic-far", "PID 101 (rank 1)")])
        far, = self.found(document, "nic-far")
        for words in ("GPU 1", "mlx5_3:1 (SYS, 2 queue pairs)", "mlx5_1:1"):
            self.assertIn(words, far["message"])
        # Named alone, it is not known what else the library has balanced.
        _, document = self.inspect("101")
        self.assertEqual(self.ids(document), [("nic-far", "PID 101 (rank 1)")])

    def test_a_variable_that_explains_it(self):
        for rank in range(2):
            self.node.rank(rank, [self.nvshmem], rank, "mlx5_3", "NVSHMEM_HCA_LIST=mlx5_3:1")
        _, document = self.inspect("--all")
        self.assertEqual(self.found(document, "mapping-differs"), [])
        self.assertEqual(len(self.found(document, "nic-one-of-many")), 1)

    def test_a_number_of_cuda_taken_for_a_physical_one(self):
        for rank in range(4):
            self.node.rank(rank, [self.rdma_core], rank, "mlx5_0", f"CUDA_VISIBLE_DEVICES={rank}")
        _, document = self.inspect("--all")
        self.assertEqual([subject for finding, subject in self.ids(document) if finding == "gpu-index-confused"],
                         [f"PID {100 + rank} (rank {rank})" for rank in (1, 2, 3)])
        self.assertEqual(self.found(document, "nic-far"), [])

    def test_devices_that_are_open_without_queue_pairs(self):
        for index in range(4):
            self.node.write(f"sys/class/infiniband_verbs/uverbs{index}/ibdev", f"mlx5_{index}\n")
        nccl = self.node.library("/opt/libnccl.so.2", elf(["NCCL version 2.28.3"]))
        self.node.process(100, [nccl], links=[("fd/5", "socket:[77]"), ("fd/6", "/dev/infiniband/uverbs0")])
        self.node.write("proc/100/net/tcp",
                        "   0: 0A00000A:1F90 0B00000A:C350 01 00000000:00000000 00:00000000 0 0 0 77\n")
        self.node.write("shmemctl/tcp", "inode 77 acked-bytes 5000000000 received-bytes 7\n")
        _, document = self.inspect("100")
        self.assertEqual(self.found(document, "tcp-fallback"), []) # a device is open, more is not known
        self.assertNotIn("queue_pairs", document["processes"][0])
        connection, = document["processes"][0]["connections"]
        self.assertEqual((connection["acknowledged_bytes"], connection["received_bytes"]), (5000000000, 7))
        self.assertNotIn("window_received_bytes", connection)
        self.node.write("shmemctl/rdma/qp", "link mlx5_0/1 lqpn 1 type GSI state RTS sq-psn 0 comm ib_core\n")
        _, document = self.inspect("100")
        fallback, = self.found(document, "tcp-fallback")
        self.assertIn("no connected queue pair on the RDMA devices that it has open (mlx5_0)", fallback["message"])
        self.assertEqual(document["processes"][0]["queue_pairs"], [])

    def test_connections_of_librdmacm(self):
        self.node.rank(0, [self.nvshmem], 0, "mlx5_0")
        self.node.write("shmemctl/rdma/cm_id", "link mlx5_0/1 cm-idn 3 lqpn 200 qp-type RC state CONNECT ps TCP pid 100 comm python3 "
                        "src-addr 10.0.0.1:4711 dst-addr 10.0.0.2:80\ncm-idn 4 state LISTEN ps TCP pid 100 comm python3\n")
        self.node.write("shmemctl/rdma/mr", "dev mlx5_0 mrn 1 mrlen 4096 pdn 2 pid 100 comm python3\n" * 2)
        self.node.write("shmemctl/rdma/cq", "dev mlx5_0 cqn 1 cqe 255 users 2 pid 100 comm python3\n")
        _, document = self.inspect("100")
        entry, = document["processes"]
        self.assertEqual(entry["rdma_connections"],
                         [{"state": "CONNECT", "device": "mlx5_0", "port": 1, "local": "10.0.0.1:4711",
                           "remote": "10.0.0.2:80"}, {"state": "LISTEN"}])
        self.assertEqual((entry["completion_queues"], entry["memory_regions"], entry["memory_region_bytes"]), (1, 2, 8192))
        shown = run("inspect", "100", "--sysroot", self.node.folder)[1]
        self.assertRegex(shown, r"(?m)^100 +mlx5_0:1 +CONNECT +10\.0\.0\.1:4711 +10\.0\.0\.2:80$")

    def test_odd_recorded_answers(self):
        self.node.rank(0, [self.nvshmem], 0, "mlx5_0")
        self.node.write("shmemctl/rdma/qp", b"link mlx5_0/1 lqpn 99999999999 pid 100\n\xff\x1b[31m pid 100\nlink \x1b[2J/1 lqpn 7 "
                        b"type RC state RTS pid 100\n")
        self.node.write("shmemctl/rdma/mr", os.urandom(4000))
        self.node.write("shmemctl/gpu-processes", os.urandom(4000))
        code, out, err = run("inspect", "--all", "--sysroot", self.node.folder, "--verbose")
        self.assertEqual((code, err), (0, ""))
        self.assertNotIn("\x1b", out)


class Connections(Inspect):
    def test_bytes_of_a_connection_in_the_window(self):
        """Two processes, and 20 MB/s at most between them: the counts are the kernel's."""
        listener = self.start("import socket, threading\n"
                              "server = socket.create_server(('127.0.0.1', 0))\n"
                              "def take():\n"
                              "    peer, _ = server.accept()\n"
                              "    while peer.recv(1 << 16): pass\n"
                              "threading.Thread(target=take, daemon=True).start()\n"
                              f"open({str(self.folder / 'port')!r}, 'w').write(str(server.getsockname()[1]))")
        port = (self.folder / "port").read_text()
        sender = self.start("import socket, threading, time\n"
                            f"peer = socket.create_connection(('127.0.0.1', {port}))\n"
                            "def give():\n"
                            "    while True:\n"
                            "        peer.sendall(bytes(200000))\n"
                            "        time.sleep(0.01)\n"
                            "threading.Thread(target=give, daemon=True).start()")
        _, document = report_of("inspect", sender.pid, listener.pid, "--window", "1")
        by_pid = {entry["pid"]: entry for entry in document["processes"]}
        skipped = [item for entry in document["processes"] for item in entry["skipped"] if "SOCK_DIAG" in item["what"]]
        if skipped: # a sandbox without NETLINK_SOCK_DIAG
            self.skipTest(skipped[0]["reason"])
        sent, = [each for each in by_pid[sender.pid]["connections"] if each["remote"].endswith(f":{port}")]
        got, = [each for each in by_pid[listener.pid]["connections"] if each["local"].endswith(f":{port}")]
        self.assertGreater(sent["window_acknowledged_bytes"], 200000)
        self.assertGreater(got["window_received_bytes"], 200000)
        self.assertEqual(got["window_acknowledged_bytes"], 0)
        self.assertGreaterEqual(sent["acknowledged_bytes"], sent["window_acknowledged_bytes"])
        # Without a window the report has the totals alone.
        _, document = report_of("inspect", sender.pid)
        sent, = [each for each in document["processes"][0]["connections"] if each["remote"].endswith(f":{port}")]
        self.assertNotIn("window_acknowledged_bytes", sent)


class Jobs(Inspect):
    """Started once per node: PEs with trees of their own, as if they ran on several machines."""

    def setUp(self):
        super().setUp()
        self.nodes = [NodeOfPairs(self.folder / name, name) for name in ("nodea", "nodeb")]
        self.nccl = [node.library("/opt/libnccl.so.2", elf(["NCCL version 2.28.3", "NCCL_DEBUG"])) for node in self.nodes]
        for index, node in enumerate(self.nodes):
            node.write("etc/machine-id", f"{index:032x}\n")
            for local in range(2):
                rank = 2 * index + local
                node.process(100 + local, [self.nccl[index]],
                             [f"RANK={rank}", "SLURM_JOB_ID=4711", "NCCL_DEBUGG=INFO", f"LOCAL_RANK={local}"],
                             state="T" if rank == 3 else "R")

    def job(self, node_of_pe, *arguments):
        choose = " ".join(f"{pe}) tree={self.nodes[node].folder};;" for pe, node in enumerate(node_of_pe))
        words = f"case $SHMEMCTL_LOCAL_RANK in {choose} esac; SHMEMCTL_SYSROOT=$tree exec \"$0\" \"$@\""
        return run("run", "-n", len(node_of_pe), "sh", "-c", words, BINARY, "inspect", *arguments)

    def test_the_rank_of_another_node(self):
        file = self.folder / "job.json"
        code, out, err = self.job([0, 0, 1], "--all", "--json", file)
        self.assertEqual(code, 0, err)
        document = json.loads(file.read_text(encoding="utf-8"))
        self.assertEqual(run("report", "validate", file)[0], 0)
        self.assertEqual((document["job"]["pes"], document["job"]["nodes"]), (3, 2))
        self.assertEqual([(entry["host"], entry["rank"]) for entry in document["processes"]],
                         [("nodea", 0), ("nodea", 1), ("nodeb", 2), ("nodeb", 3)])
        awaited, = self.found(document, "rank-awaited")
        self.assertIn("rank 3, PID 101 (python3) on nodeb, is stopped", awaited["message"])
        self.assertEqual({entry["job_verdict"] for entry in document["processes"]}, {awaited["message"]})
        ignored, = self.found(document, "env-ignored")
        self.assertEqual(ignored["subject"], "nodea, nodeb: PID 100-101 (python3)")
        self.assertEqual(out.count("rank 3, PID 101 (python3) on nodeb, is stopped"), 2, out) # the verdict, the finding
        self.assertRegex(out, r"(?m)^nodeb +101 +3 +python3")
        self.assertNotIn("PID  TCP", out)
        self.assertNotRegex(out, r"library +version")
        self.assertIn("libnccl", self.job([0, 1], "--all", "--verbose")[1])

    def test_repeated(self):
        code, out, err = self.job([0, 1], "--user", "ann", "--watch", "0.3", "--duration", "1")
        self.assertEqual(code, 0, err)
        self.assertGreaterEqual(len([line for line in out.splitlines() if line.startswith("nodeb ")]), 4, out)

    def test_numbers_of_processes_are_refused(self):
        code, _, err = self.job([0, 1], "100")
        self.assertEqual(code, 2, err)
        self.assertIn("each node has processes of its own", err)

    def test_an_archive_is_refused(self):
        code, _, err = self.job([0, 1], "--all", "--from", "node.tar.zst")
        self.assertEqual(code, 2, err)
        self.assertIn("--from node.tar.zst: cannot be passed to a job", err)
        self.assertIn("fix: omit --from, or start inspect without a launcher", err)


class Speed(Inspect):
    def test_eight_processes_of_four_hundred_libraries(self):
        """The time is told, not judged: what else the machine does is unknown."""
        node = RecordedNode(self.folder / "node")
        files = [node.library(f"/opt/lib{index}.so.1", elf(["x"])) for index in range(380)]
        files += [node.library(f"/opt/libucm_{index}.so.0", elf([f"NAME_{each}" for each in range(2000)])) for index in range(20)]
        for rank in range(8):
            node.process(100 + rank, files, [f"RANK={rank}"])
        start = time.monotonic()
        _, document = report_of("inspect", "--all", "--sysroot", node.folder)
        print(f"8 processes with 400 libraries each: {time.monotonic() - start:.2f} s", file=sys.stderr)
        self.assertEqual(len(document["processes"]), 8)
        self.assertEqual(len(document["processes"][7]["libraries"]), 20)


if __name__ == "__main__":
    unittest.main()
