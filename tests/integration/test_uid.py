"""Jobs over the uid bootstrap, of processes that no launcher started."""
import os
import socket
import subprocess
import tempfile
import unittest

from support import BINARY, clean_environment, error_lines


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(rank, size, port, secret="open sesame", timeout=100, **variables):
    environment = clean_environment(
        SHMEMCTL_BOOTSTRAP="uid", SHMEMCTL_BOOTSTRAP_UID_SESSION_ID=f"127.0.0.1:{port}",
        SHMEMCTL_BOOTSTRAP_UID_SECRET=secret, SHMEMCTL_BOOTSTRAP_UID_RANK=str(rank),
        SHMEMCTL_BOOTSTRAP_UID_SIZE=str(size), SHMEMCTL_SYMMETRIC_SIZE="16M", **variables)
    return subprocess.Popen([BINARY, "bringup", "--timeout", str(timeout)], env=environment,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def finish(processes, timeout=300):
    ends = []
    for process in processes:
        out, err = process.communicate(timeout=timeout)
        ends.append((process.returncode, out, err))
    return ends


class Uid(unittest.TestCase):
    def test_bringup_without_a_launcher(self):
        port = free_port()
        for code, _, err in finish([start(rank, 4, port) for rank in range(4)]):
            self.assertEqual(code, 0, err)

    def test_other_pes_may_start_before_pe_0(self):
        port = free_port()
        processes = [start(rank, 3, port) for rank in (2, 1, 0)]
        for code, _, err in finish(processes):
            self.assertEqual(code, 0, err)

    def test_the_secret_may_stand_in_a_file(self):
        port = free_port()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "secret")
            with open(path, "w", encoding="utf-8") as file:
                file.write("open sesame\n")
            os.chmod(path, 0o600)
            processes = [start(0, 2, port),
                         start(1, 2, port, "", SHMEMCTL_BOOTSTRAP_UID_SECRET_FILE=path)]
            for code, _, err in finish(processes):
                self.assertEqual(code, 0, err)

    def test_all_name_a_missing_pe(self):
        port = free_port()
        for code, _, err in finish([start(rank, 4, port, timeout=8) for rank in (0, 1, 3)]):
            self.assertEqual(code, 124, err)
            self.assertEqual(len(error_lines(err)), 1, err)
            self.assertIn("1 of 4 PEs has not joined: PE 2", err)
            self.assertIn("or raise --timeout\n", err)  # the command line contains it

    def test_a_rank_given_twice_is_named_by_all(self):
        port = free_port()
        for code, _, err in finish([start(rank, 3, port) for rank in (0, 1, 1)]):
            self.assertEqual(code, 2, err)
            self.assertIn("rank 1 was given to two PEs", err)

    def test_another_jobs_secret_is_refused(self):
        port = free_port()
        first, second = finish([start(0, 2, port, timeout=8),
                                start(1, 2, port, "open barley", timeout=8)])
        self.assertEqual(second[0], 2, second[2])
        self.assertIn("another job", second[2])
        self.assertEqual(first[0], 124, first[2])

    def test_a_port_scan_costs_the_job_nothing(self):
        port = free_port()
        processes = [start(0, 2, port)]
        scans = []
        # PE 0 listens until PE 1 has come: these come before it.
        while not scans:
            try:
                scans.append(socket.create_connection(("127.0.0.1", port), timeout=1))
            except OSError:
                self.assertIsNone(processes[0].poll(), "PE 0 has ended")
        for _ in range(200):
            scans.append(socket.create_connection(("127.0.0.1", port), timeout=60))
            scans[-1].sendall(b"GET / HTTP/1.0\r\n\r\n")
        processes.append(start(1, 2, port))
        for code, _, err in finish(processes):
            self.assertEqual(code, 0, err)
        for scan in scans:
            scan.close()


if __name__ == "__main__":
    unittest.main()
