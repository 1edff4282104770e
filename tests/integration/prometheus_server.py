"""A Prometheus and a node_exporter of the distribution's packages, on free ports of 127.0.0.1."""
import contextlib
import json
import pathlib
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

PROGRAMS = ("prometheus", "promtool", "prometheus-node-exporter")
DEADLINE_S = 60


def missing_programs():
    return [name for name in PROGRAMS if shutil.which(name) is None]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def get(url):
    """The body, also of an error response; None without a response."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode()
    except OSError:
        return None


def wait_for(what, ready):
    """The first answer of ready() that is true."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        if answer := ready():
            return answer
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {DEADLINE_S} s")


class Servers:
    """node_exporter over a folder of metrics and a synthetic /sys, scraped each second."""

    def __init__(self, folder, textfiles, sysfs):
        self.folder = pathlib.Path(folder)
        self.textfiles, self.sysfs = textfiles, sysfs
        self.exporter, self.prometheus = (f"127.0.0.1:{free_port()}" for _ in range(2))

    @contextlib.contextmanager
    def running(self):
        with contextlib.ExitStack() as stack:
            self.start(stack, "prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile",
                       "--collector.infiniband", f"--collector.textfile.directory={self.textfiles}",
                       f"--path.sysfs={self.sysfs}", f"--web.listen-address={self.exporter}")
            wait_for("node_exporter", lambda: get(f"http://{self.exporter}/metrics"))
            config = self.folder / "prometheus.yml"
            config.write_text(json.dumps({  # JSON is YAML
                "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
                "scrape_configs": [{"job_name": "node", "static_configs": [{"targets": [self.exporter]}]}]}))
            self.start(stack, "prometheus", f"--config.file={config}", f"--storage.tsdb.path={self.folder / 'data'}",
                       f"--web.listen-address={self.prometheus}", "--log.level=warn")
            wait_for("Prometheus", lambda: "is Ready" in (get(f"http://{self.prometheus}/-/ready") or ""))
            yield self

    def start(self, stack, *command):
        with open(self.folder / f"{command[0]}.log", "wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)  # pylint: disable=consider-using-with
        stack.callback(self.stop, process)

    @staticmethod
    def stop(process):
        process.terminate()
        try:
            process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def metrics(self):
        """What node_exporter serves."""
        return get(f"http://{self.exporter}/metrics")

    def query(self, expression):
        """The series of an expression now; what Prometheus refuses fails."""
        words = urllib.parse.urlencode({"query": expression})
        answer = json.loads(get(f"http://{self.prometheus}/api/v1/query?{words}") or "{}")
        assert answer.get("status") == "success", f"{expression}: {answer.get('error')}"
        return answer["data"]["result"]
