"""`report prom` and the Grafana dashboard, with a real node_exporter and a real Prometheus."""
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import prometheus_server
from support import SOURCE, report_of, run
from test_hotspots import GB, Tree
from test_report_compare import fake_report, row

ALERTS = SOURCE / "reports" / "grafana" / "shmemctl-alerts.yml"
DASHBOARD = SOURCE / "reports" / "grafana" / "shmemctl.json"
# node_exporter reads files of hw_counters since a release that Debian 12 and Ubuntu 24.04 do not have.
NEEDS_NEWER_EXPORTER = {
    "node_infiniband_np_ecn_marked_roce_packets_received_total", "node_infiniband_np_cnp_packets_sent_total",
    "node_infiniband_rp_cnp_packets_handled_total", "node_infiniband_out_of_sequence_packets_received_total",
    "node_infiniband_out_of_buffer_drops_total", "node_infiniband_local_ack_timeout_errors_total"}
COUNTERS = ("port_rcv_data", "port_xmit_data", "port_xmit_wait", "port_xmit_discards", "link_downed",
            "link_error_recovery", "symbol_error")


def panels_of(dashboard):
    return [panel for outer in dashboard["panels"] for panel in (outer, *outer.get("panels", []))]


def targets_of(dashboard):
    return [(panel["title"], target["expr"]) for panel in panels_of(dashboard) for target in panel.get("targets", [])]


def without_variables(expression):
    """As Grafana sends it with everything chosen."""
    return re.sub(r"\$(instance|device|benchmark)\b", ".*", expression).replace("$__rate_interval", "1m")


def make_sysfs(root):
    """Two ports as an mlx5 driver shows them, as far as node_exporter reads them."""
    for device in ("mlx5_0", "mlx5_1"):
        folder = root / "class" / "infiniband" / device
        port = folder / "ports" / "1"
        (port / "counters").mkdir(parents=True)
        for path, text in ((folder / "board_id", "MT_1"), (folder / "fw_ver", "28.43.1014"),
                           (folder / "hca_type", "MT4129"), (port / "state", "4: ACTIVE"),
                           (port / "phys_state", "5: LinkUp"), (port / "rate", "400 Gb/sec (4X NDR)")):
            path.write_text(text + "\n")
        for counter in COUNTERS:
            (port / "counters" / counter).write_text("7\n")


def hotspots_report():
    """What `hotspots` writes of two trees: in 10 s mlx5_0 sends 400 GB, the others a fortieth of it."""
    with tempfile.TemporaryDirectory() as folder:
        before, after = pathlib.Path(folder, "before"), pathlib.Path(folder, "after")
        Tree(before, hostname="node1")
        tree = Tree(after, uptime_s=110, hostname="node1")
        for index, sent_bytes in enumerate((400 * GB, 10 * GB, 10 * GB, 10 * GB)):
            tree.traffic(index, sent_bytes)
        return report_of("hotspots", "--sysroot", before, "--sysroot-after", after)[1]


def check_report():
    """A report with everything that has a metric of its own."""
    fast = row(1 << 20, 40, 1, rate_Mops=0.025, wire_GBps=20, link_fraction=0.5, limited_by="mlx5_0/1")
    for key in ("link_fraction_reason", "limited_by_reason"):
        del fast[key]
    failed = row(8, 2, 2, status="fail", reason="byte 3 is wrong")
    hotspots = hotspots_report()
    document = fake_report("check", [fast, failed])
    document.update(exit_code=1, nic_counters=hotspots["nic_counters"], hotspots=hotspots["hotspots"],
                    findings=[{"id": "nic-hotspot", "severity": "error", "subject": "mlx5_0", "message": "hot",
                               "fix": "map"}],
                    checks=[{"id": "memlock", "title": "locked memory", "status": "fail", "reason": "64 KiB",
                             "evidence": "RLIMIT_MEMLOCK", "fix": "raise it", "group": "memory"}])
    return document


class DashboardFile(unittest.TestCase):
    def setUp(self):
        self.dashboard = json.loads(DASHBOARD.read_text())

    def test_panels_have_ids_titles_and_descriptions(self):
        panels = panels_of(self.dashboard)
        ids = [panel["id"] for panel in panels]
        self.assertEqual(len(ids), len(set(ids)))
        for panel in panels:
            self.assertTrue(panel["title"])
            if panel["type"] != "row":
                self.assertGreater(len(panel["description"]), 20, panel["title"])
                self.assertTrue(panel["targets"], panel["title"])
                letters = [target["refId"] for target in panel["targets"]]
                self.assertEqual(len(letters), len(set(letters)), panel["title"])
        # Grafana gives an imported dashboard its own id.
        self.assertNotIn("id", self.dashboard)

    def test_the_grid_has_no_overlap(self):
        taken = {}
        for panel in self.dashboard["panels"]:
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    self.assertIsNone(taken.get((x, y)), f"{panel['title']} over {taken.get((x, y))}")
                    taken[x, y] = panel["title"]

    def test_the_counters_that_it_asks_for_are_written(self):
        written = {counter["counter"] for counter in hotspots_report()["nic_counters"]}
        asked = [match for _, expr in targets_of(self.dashboard) if "shmemctl_nic_delta" in expr
                 for match in re.findall(r'counter(=~?)"([^"]+)"', expr)]
        self.assertTrue(asked)
        for operator, counter in asked:
            found = [name for name in written if re.fullmatch(counter if operator == "=~" else re.escape(counter), name)]
            self.assertTrue(found, counter)

    def test_every_source_is_the_variable(self):
        variables = {variable["name"]: variable for variable in self.dashboard["templating"]["list"]}
        self.assertEqual((variables["datasource"]["type"], variables["datasource"]["query"]), ("datasource", "prometheus"))
        sources = [panel["datasource"] for panel in panels_of(self.dashboard) if panel["type"] != "row"]
        sources += [target["datasource"] for panel in panels_of(self.dashboard) for target in panel.get("targets", [])]
        sources += [variable["datasource"] for variable in variables.values() if variable["type"] == "query"]
        for source in sources:
            self.assertEqual(source, {"type": "prometheus", "uid": "${datasource}"})
        used = set(re.findall(r"\$(\w+)", " ".join(expr for _, expr in targets_of(self.dashboard))))
        self.assertEqual(used - {"__rate_interval"}, set(variables) - {"datasource"})


# A series that fires each alert, and one of the same metric that does not.
FIRES = {
    "ShmemctlRunFailed": ("shmemctl_run_success", "0", "1"),
    "ShmemctlReportStale": ("shmemctl_run_timestamp_seconds", "-90000", "0"),
    "ShmemctlCheckFailed": ('shmemctl_check{id="memlock",status="fail"}', "1", None),
    "ShmemctlFindingError": ('shmemctl_findings{id="nic-hotspot",severity="error"}', "2", None),
    "ShmemctlWrongData": ('shmemctl_result_success{benchmark="put"}', "0", "1"),
    "ShmemctlHotNic": ('shmemctl_nic_hotspot{host="n",device="mlx5_1",port="1"}', "1", "0"),
    "ShmemctlNicNearItsLimit": (
        'shmemctl_nic_utilization_ratio{host="n",device="mlx5_1",port="1",direction="sent"}', "0.95", "0.4"),
    "ShmemctlNicsUneven": ('shmemctl_nic_imbalance_ratio{kind="node",name="n",direction="sent"}', "3.2", "1.1"),
    "ShmemctlRegression": ('shmemctl_comparison_rows{verdict="worse"}', "2", "0"),
    "ShmemctlThresholdMissed": ('shmemctl_threshold_success{threshold="a<1"}', "0", "1")}


def rule_test(alert, series, value, fires):
    """A test of promtool: whether the alert fires after a quarter of an hour of this value."""
    return {"interval": "1m", "input_series": [{"series": series, "values": f"{value}x20"}],
            "promql_expr_test": [{"expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)',
                                  "eval_time": "15m", "exp_samples": [{"labels": "{}", "value": int(fires)}]}]}


@unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
class Alerts(unittest.TestCase):
    def promtool(self, *words):
        done = subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_the_rules_are_rules(self):
        self.assertIn(f"{len(FIRES)} rules found", self.promtool("check", "rules", ALERTS))

    def test_each_fires_for_what_it_is_about_only(self):
        names = set(re.findall(r"alert: (\w+)", ALERTS.read_text()))
        self.assertEqual(names, set(FIRES))
        tests = []
        for alert, (series, bad, good) in FIRES.items():
            tests.append(rule_test(alert, series, bad, True))
            tests.append(rule_test(alert, series if good else re.sub("fail|error", "warning", series), good or bad,
                                   False))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "tests.yml")  # JSON is YAML
            path.write_text(json.dumps({"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": tests}))
            self.promtool("test", "rules", path)

    def test_the_metrics_are_those_of_reports(self):
        asked = set(re.findall(r"expr:.*?\b(shmemctl_\w+)", ALERTS.read_text()))
        with tempfile.TemporaryDirectory() as folder:
            check, diff = pathlib.Path(folder, "check.json"), pathlib.Path(folder, "diff.json")
            check.write_text(json.dumps(check_report()))
            base = pathlib.Path(folder, "base.json")
            base.write_text(json.dumps(fake_report("base", [row(1 << 20, 30, 3), row(8, 2, 4)])))
            self.assertEqual(run("report", "diff", base, check, "--json", diff, "--require", "put.p50_us<1000")[0], 1)
            written = "".join(run("report", "prom", path)[1] for path in (check, diff))
        self.assertEqual(asked - set(re.findall(r"^shmemctl_\w+", written, re.M)), set())
        self.assertEqual(len(asked), len(FIRES))


@unittest.skipIf(prometheus_server.missing_programs(),
                 "not installed: " + ", ".join(prometheus_server.missing_programs()))
class Scraped(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.textfiles, sysfs = cls.folder / "textfiles", cls.folder / "sys"
        cls.textfiles.mkdir()
        make_sysfs(sysfs)
        cls.write_metrics()
        servers = prometheus_server.Servers(cls.folder, cls.textfiles, sysfs)
        cls.servers = cls.enterClassContext(servers.running()) if hasattr(cls, "enterClassContext") else None
        if cls.servers is None:  # Python before 3.11
            context = servers.running()
            cls.servers = context.__enter__()
            cls.addClassCleanup(context.__exit__, None, None, None)
        # rate() needs two scrapes.
        prometheus_server.wait_for("two scrapes", lambda: cls.servers.query(
            "rate(node_infiniband_port_data_transmitted_bytes_total[1m])"))

    @classmethod
    def write_metrics(cls):
        check, base, diff = (cls.folder / name for name in ("check.json", "base.json", "diff.json"))
        check.write_text(json.dumps(check_report()))
        base.write_text(json.dumps(fake_report("base", [row(1 << 20, 30, 3), row(8, 2, 4)])))
        code, _, err = run("report", "diff", base, check, "--json", diff, "--require", "put.p50_us<1000")
        assert code == 1, err
        for name, report in (("check", check), ("diff", diff)):
            code, _, err = run("report", "prom", report, "--label", f"report={name}", "-o",
                               cls.textfiles / f"{name}.prom")
            assert code == 0, err

    def test_promtool_has_nothing_to_say(self):
        for path in sorted(self.textfiles.glob("*.prom")):
            done = subprocess.run(["promtool", "check", "metrics"], input=path.read_bytes(), capture_output=True,
                                  timeout=60, check=False)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""), path.name)

    def test_node_exporter_serves_every_series(self):
        served = self.servers.metrics()
        self.assertIn("node_textfile_scrape_error 0", served)
        series = {line for path in self.textfiles.glob("*.prom") for line in path.read_text().splitlines()
                  if not line.startswith("#")}
        self.assertGreater(len(series), 30)
        names = {re.match(r"\w+", line).group() for line in series}
        for name in names:
            count = sum(line.startswith((name + "{", name + " ")) for line in series)
            self.assertEqual(sum(line.startswith((name + "{", name + " ")) for line in served.splitlines()), count, name)

    def test_two_reports_of_one_node_need_labels(self):
        # Without them node_exporter finds a series twice and serves nothing at all.
        texts = [run("report", "prom", self.folder / f"{name}.json")[1] for name in ("check", "diff")]
        series = [{line.rsplit(" ", 1)[0] for line in text.splitlines() if not line.startswith("#")} for text in texts]
        self.assertIn("shmemctl_run_success", series[0] & series[1])
        labelled = [{line.rsplit(" ", 1)[0] for line in path.read_text().splitlines() if not line.startswith("#")}
                    for path in self.textfiles.glob("*.prom")]
        self.assertEqual(labelled[0] & labelled[1], set())

    def test_every_expression_has_data(self):
        dashboard = json.loads(DASHBOARD.read_text())
        for title, expression in targets_of(dashboard):
            with self.subTest(panel=title, expression=expression):
                found = self.servers.query(without_variables(expression))
                names = set(re.findall(r"\b(?:node|shmemctl)_\w+", expression))
                self.assertTrue(names)
                if not names & NEEDS_NEWER_EXPORTER:
                    self.assertTrue(found, "no data")
        shown = set(re.findall(r"\bshmemctl_\w+", DASHBOARD.read_text()))
        ours = {re.match(r"\w+", line).group() for path in self.textfiles.glob("*.prom")
                for line in path.read_text().splitlines() if not line.startswith("#")}
        self.assertEqual(ours - shown, {"shmemctl_build_info"})

    def test_values_of_the_panels(self):
        expressions = {title: without_variables(expression)
                       for title, expression in targets_of(json.loads(DASHBOARD.read_text()))}
        # Errors: nic-hotspot of the check; regression and threshold-missed of the comparison.
        for title, value in (("Last run", 0), ("Errors found", 3), ("Rows that failed", 1)):
            (only,) = self.servers.query(expressions[title])
            self.assertEqual(float(only["value"][1]), value, title)
        by_port = {series["metric"]["device"]: float(series["value"][1])
                   for series in self.servers.query(expressions["Time at the full rate of the link"])}
        self.assertAlmostEqual(by_port["mlx5_0"], 400e9 / 50e9)  # at 400 Gb/s
        self.assertAlmostEqual(by_port["mlx5_1"], 10e9 / 50e9)
        hot = {(series["metric"]["device"], series["metric"]["direction"]): float(series["value"][1])
               for series in self.servers.query(expressions["Hot NICs"])}
        self.assertEqual(hot, {("mlx5_0", "sent"): 40e9, ("mlx5_0", "received"): 0})
        shares = {(series["metric"]["device"], series["metric"]["direction"]): float(series["value"][1])
                  for series in self.servers.query(expressions["Share of the link in the run"])}
        self.assertAlmostEqual(shares["mlx5_0", "sent"], 0.8)
        self.assertAlmostEqual(shares["mlx5_3", "sent"], 0.02)

    def test_variables_find_their_values(self):
        for variable in json.loads(DASHBOARD.read_text())["templating"]["list"]:
            if variable["type"] != "query":
                continue
            metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"]).groups()
            self.assertTrue(all(series["metric"].get(label) for series in self.servers.query(metric)), metric)
            self.assertTrue(self.servers.query(metric), metric)


if __name__ == "__main__":
    unittest.main()
