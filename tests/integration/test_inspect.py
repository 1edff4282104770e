"""inspect: processes of others, live and from recorded trees."""
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

from support import CliTest, clean_environment, report_of, run

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
    """A folder with a /proc of made-up processes, and the libraries that they have mapped."""

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
        for _ in range(5): # on a machine that does more, it may get no CPU for a while
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
        for words in (nccl, mlx5, "MLX5_1.25"):
            self.assertIn(words, missing["message"])

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
