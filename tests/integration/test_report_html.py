"""`report html`: from reports to a page in a real browser."""
import base64
import hashlib
import json
import os
import pathlib
import re
import tempfile
import time
import unittest

import page_reports
from browser import Browser, reason_to_skip
from support import CliTest, DATA, run

NO_BROWSER = reason_to_skip()
SPEED_COUNTS = os.environ.get("SHMEMCTL_SOAK") == "1"

# The content of a canvas: its opaque pixels, and their number of colours.
PIXELS = """[...document.querySelectorAll('canvas')].filter((canvas) => canvas.className !== 'ramp').map((canvas) => {
  const data = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  return {name: canvas.ariaLabel, painted: data.filter((pixel) => pixel >>> 24).length, colours: new Set(data).size};
})"""

CHARTS = """[...document.querySelectorAll('canvas')].map((canvas) => Chart.getChart(canvas)).filter((chart) => chart).map((chart) => ({
  name: chart.canvas.ariaLabel,
  lines: chart.data.datasets.map((one, i) => ({name: one.label, data: one.data,
    marks: chart.getDatasetMeta(i).data.filter((mark) => isFinite(mark.x) && isFinite(mark.y)).length})),
}))"""

# A table below `element`: opened, all its rows shown, as lists of texts.
TABLE = """((element) => {
  element.querySelectorAll('details').forEach((details) => { details.open = true; details.dispatchEvent(new Event('toggle')); });
  const more = [...element.querySelectorAll('button')].find((button) => button.textContent.startsWith('more of'));
  for (let i = 0; more && !more.hidden && i < 1000; ++i)
    more.click();
  const texts = (row) => [...row.cells].map((cell) => cell.textContent);
  return {columns: texts(element.querySelector('thead tr')), rows: [...element.querySelectorAll('tbody tr')].map(texts)};
})"""


def close_to(text, value):
    """Whether the cell's text is this number, with four digits."""
    return abs(float(text) - value) <= 1e-3 * abs(value)


class Pages(CliTest):
    """Writes reports and makes pages of them."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, document):
        path = self.folder / name
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    def make(self, *documents, more=()):
        files = [self.write(f"report{i}.json", document) for i, document in enumerate(documents)]
        page = self.folder / "page.html"
        result = run("report", "html", *files, *more, "-o", page, "--force")
        self.assertEqual(result, (0, "", ""))
        return page


class Files(Pages):
    """What needs no browser."""

    def test_the_page_needs_nothing_beside_it(self):
        text = self.make(page_reports.full()).read_text(encoding="utf-8")
        for words in ("src=", "@import", "url(", "<img", "<iframe"):
            self.assertNotIn(words, text.split("<script>")[0], words)
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
        self.assertTrue(policy.startswith("default-src 'none'; "))
        self.assertNotIn("unsafe", policy)
        for element in ("script", "style"):
            for content in re.findall(f"<{element}>(.*?)</{element}>", text, re.DOTALL):
                digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
                self.assertIn(f"'sha256-{digest}'", policy)
        self.assertIn("Permission is hereby granted", text)  # the library's licence

    def test_texts_of_reports_stay_data(self):
        text = self.make(page_reports.hostile(page_reports.full())).read_text(encoding="utf-8")
        model = re.search('<script type="application/json" id="model">(.*?)</script>', text, re.DOTALL).group(1)
        self.assertNotRegex(model, r"[<>&\u2028\u2029]|[^\x20-\x7e]")
        self.assertIn("</script><script>window.hacked=1", json.dumps(json.loads(model)))
        self.assertEqual(text.lower().count("<script"), 3)
        self.assertEqual(text.count("<!--"), 0)

    def test_bad_input_is_2(self):
        good = self.write("good.json", page_reports.report(page_reports.sweep("put", 1, 50)))
        other = self.write("other.json", page_reports.report(page_reports.sweep("get", 1, 50)))
        page = self.folder / "page.html"
        self.assert_refused(run("report", "html", self.folder / "nothing.json", "-o", page))
        self.assert_refused(run("report", "html", good, good, "-o", page))  # one run twice
        self.assertIn("none of its", self.assert_refused(run("report", "html", good, "--baseline", other, "-o", page)))
        self.assertFalse(page.exists())
        page.write_text("mine")
        self.assert_refused(run("report", "html", good, "-o", page))
        self.assertEqual(page.read_text(), "mine")

    def test_a_page_on_stdout(self):
        report = self.write("r.json", page_reports.report())
        code, out, err = run("report", "html", report)
        self.assertEqual((code, err), (0, ""))
        self.assertTrue(out.startswith("<!DOCTYPE html>") and out.endswith("</html>\n"))


@unittest.skipIf(NO_BROWSER, NO_BROWSER)
class InBrowser(Pages):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def open(self, page, width=1280, dark=False):
        self.browser.look(width, 900, dark)
        self.browser.open(page)

    def assert_quiet(self):
        self.browser.draw_all()
        self.assertEqual(self.browser.problems(), [])
        self.assertEqual([url for url in self.browser.requests() if not url.startswith("data:")], [])

    def table(self, selector):
        return self.browser.evaluate(f"{TABLE}({selector})")

    def test_a_node(self):
        document = page_reports.full()
        self.open(self.make(document))
        self.assert_quiet()
        text = self.browser.evaluate("document.body.innerText")
        self.assertEqual(self.browser.evaluate("document.querySelector('.verdict').textContent"),
                         "Something is wrong: mlx5_0/1 (nic-hotspot).")
        self.assertIn("at most a third of the bandwidth each\n1 error, 1 warning.", text.replace("\n\n", "\n"))
        self.assertLess(text.index("nic-hotspot"), text.index("GPUs and NICs"))  # findings first
        # Every picture shows something.
        pictures = self.browser.evaluate(PIXELS)
        self.assertEqual(len(pictures), 5)  # loads, pairs, waits, put, get
        for picture in pictures:
            self.assertGreater(picture["painted"], 500, picture)
            self.assertGreater(picture["colours"], 3, picture)
        charts = {chart["name"]: chart for chart in self.browser.evaluate(CHARTS)}
        for chart in charts.values():
            for line in chart["lines"]:
                self.assertEqual(line["marks"], len(line["data"]), line["name"])
        rows = [row for row in document["results"] if row["case"] == "get"]
        self.assertEqual(charts["get"]["lines"][0]["data"],
                         [{"x": row["params"]["size_bytes"], "y": row["stats"]["p50"]} for row in rows])
        # The topology: hot and idle NICs, and the mapping.
        svg = "document.querySelector('svg')"
        self.assertEqual(self.browser.evaluate(f"[...{svg}.querySelectorAll('.hot .name')].map((e) => e.textContent)"), ["mlx5_0"])
        self.assertEqual(self.browser.evaluate(f"{svg}.querySelectorAll('.nic.idle').length"), 4)
        self.assertEqual(self.browser.evaluate(f"{svg}.querySelectorAll('path.near').length"), 7)
        self.assertEqual(self.browser.evaluate(f"{svg}.querySelectorAll('path.far').length"), 1)

    def test_tables_say_what_the_report_says(self):
        document = page_reports.full()
        self.open(self.make(document))
        results = self.table("document.querySelector('#results figure')")
        self.assertEqual(len(results["rows"]), len(document["results"]))
        column = {name: i for i, name in enumerate(results["columns"])}
        for cells, row in zip(results["rows"], document["results"]):
            self.assertEqual(cells[column["case"]], row["case"])
            for name in ("min", "p50", "max"):
                self.assertTrue(close_to(cells[column[name]], row["stats"][name]), (cells, row))
            self.assertTrue(close_to(cells[column["GB/s"]], row["bandwidth_GBps"]), (cells, row))
        pairs = self.table("document.querySelector('#pairs figure')")
        speed = {(row["params"]["source"], row["params"]["target"]): row["bandwidth_GBps"] for row in page_reports.links()}
        for cells in pairs["rows"]:
            for target, text in zip(pairs["columns"][1:], cells[1:]):
                if cells[0] == target:
                    self.assertEqual(text, "")
                else:
                    self.assertTrue(close_to(text, speed[cells[0], target]))
        waits = self.table("document.querySelector('#moe figure')")
        for cells, values in zip(waits["rows"], document["moe"][0]["waits"][0]["wait_us"]):
            self.assertTrue(all(close_to(text, value) for text, value in zip(cells[1:], values)))
        loads = self.table("document.querySelectorAll('#nics figure')[1]")
        self.assertEqual([row[-1] for row in loads["rows"]], ["hot"] + [""] * 7)
        sweep = self.table("document.querySelectorAll('#sweeps figure')[0]")
        self.assertEqual(sweep["columns"], ["size", "scope=block", "scope=thread"])
        self.assertEqual((sweep["rows"][0][0], sweep["rows"][-1][0]), ("8", "64M"))
        counters = self.table("[...document.querySelectorAll('#nics figure')].at(-1)")
        self.assertEqual(counters["rows"][0][counters["columns"].index("change")], str(3 * 10**9))

    def test_tables_sort_filter_and_choose(self):
        self.open(self.make(page_reports.full()))
        figure = "document.querySelector('#results figure')"
        before = self.table(figure)
        place = before["columns"].index("GB/s")
        self.browser.evaluate(f"{figure}.querySelectorAll('th button')[{place}].click()")
        speeds = [float(row[place]) for row in self.table(figure)["rows"]]
        self.assertEqual(speeds, sorted(speeds))
        self.browser.evaluate(f"""{{ const input = {figure}.querySelector('input'); input.value = 'get 64M';
                                  input.dispatchEvent(new Event('input')); }}""")
        self.assertEqual(len(self.table(figure)["rows"]), 1)
        chart = "document.querySelectorAll('#sweeps figure')[1]"
        self.browser.draw_all()
        self.browser.evaluate(f"{chart}.querySelectorAll('.choice button')[1].click()")
        (get,) = [one for one in self.browser.evaluate(CHARTS) if one["name"] == "get"]
        self.assertEqual([line["name"] for line in get["lines"]], ["measured", "limit: mlx5_0:1, 400 Gb/s"])
        for point in get["lines"][1]["data"]:
            self.assertAlmostEqual(point["y"], 50, places=6)

    def test_no_row_is_taller_than_two_lines(self):
        words = "the network marks packets, so that it is congested, or a cable is bad " * 6
        document = page_reports.full()
        for i, row in enumerate(document["results"]):
            row.update(verified="unchecked", reason=words + str(i), limited_by=row["limited_by"] and "x" * 200)
            row["params"]["placed_on"] = "gpu-node-07"
        document["checks"][0]["evidence"] = "/sys/class/infiniband/" * 40
        document["command"] += ["--hca-list", ",".join(f"mlx5_{i}" for i in range(64))]
        page = self.make(document)
        for width in (1280, 360):
            self.open(page, width)
            self.assert_quiet()
            self.assert_no_sideways()
            self.browser.evaluate("""document.querySelectorAll('details').forEach((details) => {
                details.open = true; details.dispatchEvent(new Event('toggle')); })""")
            rows = self.browser.evaluate("""[...document.querySelectorAll('tbody tr')].map((row) => {
                const line = parseFloat(getComputedStyle(row).lineHeight);
                return [row.getBoundingClientRect().height / line, row.textContent]; })""")
            self.assertGreater(len(rows), 100)
            # Two lines, and the space and the rule around them.
            self.assertLess(max(rows)[0], 2.5, max(rows)[1])
            # The page contains all of a text, and a click shows it.
            lines = self.browser.evaluate("""(() => {
                const text = [...document.querySelectorAll('#results .long')].find((one) => one.textContent.startsWith('the network'));
                const before = text.getBoundingClientRect().height;
                text.click();
                return [before, text.getBoundingClientRect().height, text.title]; })()""")
            self.assertGreater(lines[1], 2 * lines[0])
            self.assertEqual(lines[2], words + "0")

    def test_names_of_hosts_are_not_broken(self):
        rows = [page_reports.row("put", {"size_bytes": 8 << i, "host_of_target": f"gpu-node-{i:02d}"}, 1 + i) for i in range(8)]
        self.open(self.make(page_reports.report(rows)), 360)
        heights = self.browser.evaluate("""[...document.querySelectorAll('#results tbody tr')].map((row) =>
            row.getBoundingClientRect().height / parseFloat(getComputedStyle(row).lineHeight))""")
        self.assertEqual(len(heights), 8)
        self.assertLess(max(heights), 1.5)

    def test_columns_that_say_the_same_stand_above(self):
        rows = page_reports.sweep("put", 1.2, 50, scope="block", pes=2)
        self.open(self.make(page_reports.report(rows)))
        results = self.table("document.querySelector('#results figure')")
        self.assertNotIn("scope", results["columns"])
        self.assertIn("status", results["columns"])
        note = self.browser.evaluate("document.querySelector('#results .note').textContent")
        self.assertIn("pes 2, scope block", note)
        saved = self.browser.evaluate("""(() => {
            const block = JSON.parse(document.getElementById('model').textContent).sections.find((one) => one.id === 'results').blocks[0];
            let text = '';
            const blob = window.Blob;
            window.Blob = class { constructor(parts) { text = parts[0]; return new blob(parts); } };
            document.querySelector('#results .tools button').click();
            window.Blob = blob;
            return text; })()""")
        self.assertIn("scope", saved.splitlines()[0].split(","))

    def test_findings_of_one_id_are_one_entry(self):
        document = page_reports.full()
        for pe in range(896):
            document["findings"].append({
                "id": "bench-interference", "severity": "warning", "subject": f"gpu-node-{pe // 8:03d} bench put",
                "message": f"PE {pe}: it waited for a core", "fix": "measure alone"})
        self.open(self.make(document))
        self.assert_quiet()
        entries = "document.querySelectorAll('#findings .findings > ul > li')"
        self.assertEqual(self.browser.evaluate(f"{entries}.length"), 4)
        texts = self.browser.evaluate(f"[...{entries}].map((one) => one.innerText)")
        self.assertIn("bench-interference ×896 gpu-node-000 bench put", texts[2])
        every = self.table(f"{entries}[2]")
        self.assertEqual(len(every["rows"]), 896)
        self.assertEqual(every["rows"][-1][-1], "PE 895: it waited for a core")

    def test_parts_of_a_check_are_seen_at_once(self):
        document = page_reports.full()
        document["checks"] += [
            {"id": name, "group": "verdict", "title": "what it is", "status": status, "reason": reason, "evidence": "", "fix": ""}
            for name, status, reason in (("topo", "fail", "1 error: PE 0 and 1 share a NIC"), ("doctor", "pass", "nothing is wrong"))]
        self.open(self.make(document))
        self.assert_quiet()
        parts = self.browser.evaluate("[...document.querySelectorAll('#findings .parts li')].map((one) => one.innerText.replace(/\\s+/g, ' '))")
        self.assertEqual(parts, ["✗ topo 1 error: PE 0 and 1 share a NIC", "✓ doctor nothing is wrong"])

    def test_loads_are_marked_by_the_rate_of_their_link(self):
        document = page_reports.full()
        document["hotspots"]["signs"].append({
            "host": "node1", "device": "mlx5_3", "port": 1, "counter": "link_downed", "delta": 12, "per_s": 1.2, "limit": ">0",
            "finding": "link-flapping", "severity": "error", "meaning": "the link went down", "source": "vendor"})
        self.open(self.make(document))
        self.assert_quiet()
        canvas = "document.querySelector('#nics canvas')"
        labels = self.browser.evaluate(f"Chart.getChart({canvas}).data.labels")
        self.assertEqual((labels[0], labels[1], labels[3]), ("mlx5_0:1 HOT", "mlx5_1:1", "mlx5_3:1 ERROR"))
        # The axis reaches 50 GB/s, and something in the text's colour is there beside each bar.
        marked = self.browser.evaluate(f"""(() => {{
            const chart = Chart.getChart({canvas}), {{x, y}} = chart.scales, ratio = chart.currentDevicePixelRatio;
            const context = chart.canvas.getContext('2d');
            const painted = (value, i) => [...context.getImageData((x.getPixelForValue(value) - 2) * ratio, y.getPixelForValue(i) * ratio, 4 * ratio, 1).data]
                .some((part, at) => at % 4 === 3 && part > 200);
            return [x.max >= 50, chart.data.labels.map((_, i) => painted(50, i)), painted(48, 1)]; }})()""")
        self.assertEqual(marked, [True, [True] * 8, False])
        self.assertIn("rate of the link", self.browser.evaluate("document.querySelector('#nics figure').innerText"))
        faulty = "[...document.querySelectorAll('svg .nic.faulty ~ .name, svg .nic.faulty .name')].map((one) => one.textContent)"
        self.assertIn("mlx5_3", self.browser.evaluate(faulty))
        # Loads that are small beside the rate are not squeezed: the page says where it is.
        for port in document["hotspots"]["ports"]:
            for way in ("sent", "received"):
                port[way].update(GBps=port[way]["GBps"] / 1000, link_share=port[way]["link_share"] / 1000)
        self.open(self.make(document))
        self.browser.draw_all()
        self.assertLess(self.browser.evaluate(f"Chart.getChart({canvas}).scales.x.max"), 0.1)
        self.assertIn("rate of the link: 50 GB/s, beyond this axis", self.browser.evaluate("document.querySelector('#nics figure').innerText"))

    def test_a_simulated_cluster_has_charts_and_its_hot_nics_are_red(self):
        report = self.folder / "sim.json"
        self.assertEqual(run("sim", "--from", DATA / "nccl" / "pairs-8gpu-8nic.xml", "--nodes", 128, "--num-experts", 1024, "--num-tokens", 16,
                             "--world", "deepep-ht", "--kill-nic", "5/mlx5_0", "--steps", 4, "--json", report)[0], 0)
        page = self.folder / "page.html"
        self.assertEqual(run("report", "html", report, "-o", page)[0], 0)
        for width, dark in ((1280, False), (1280, True), (360, False)):
            self.open(page, width, dark)
            self.assert_quiet()
            self.assert_no_sideways()
        charts = {chart["name"]: chart for chart in self.browser.evaluate(CHARTS)}
        times = charts["Time of a step"]
        self.assertEqual([line["name"] for line in times["lines"]], ["dispatch", "combine", "step"])
        operations = [{one["operation"]: one["time_us"]["mean"] for one in variant["operations"]}
                      for variant in json.loads(report.read_text())["simulation"]["variants"]]
        for line in times["lines"]:
            self.assertEqual(line["data"], [one[line["name"]] for one in operations])
        rails = "[...document.querySelectorAll('canvas')].find((one) => one.ariaLabel === 'The busiest NIC of each rail, given')"
        self.assertEqual(self.browser.evaluate(f"Chart.getChart({rails}).data.labels"),
                         [f"mlx5_{i}/1{' HOT' if i % 2 == 0 else ''}" for i in range(8)])
        red = "[...document.querySelectorAll('svg .hot .name')].map((one) => one.textContent)"
        self.assertEqual(self.browser.evaluate(red), ["mlx5_0", "mlx5_2", "mlx5_4", "mlx5_6"])
        text = self.browser.evaluate("document.querySelector('#simulation').innerText")
        self.assertIn("node 5 mlx5_0/1 is killed: PEs 0 and 1 use mlx5_1/1.", text)

    def test_a_slow_rank_is_named_above_the_matrix(self):
        self.open(self.make(page_reports.full()))
        self.assert_quiet()
        above = self.browser.evaluate("""(() => {
            const figure = document.querySelector('#moe figure'), canvas = figure.querySelector('.heat canvas');
            return [...figure.querySelectorAll('.verdict-line')].filter((line) =>
                line.getBoundingClientRect().bottom <= canvas.getBoundingClientRect().top).map((line) => line.textContent); })()""")
        self.assertEqual(above, ["dispatch: PE 3 is slow: the others wait for it", "combine: PE 3 is slow: the others wait for it"])

    def test_runs_in_time_and_a_baseline(self):
        runs = page_reports.series()
        self.open(self.make(*reversed(runs), more=["--baseline", self.write("base.json", page_reports.report(
            page_reports.sweep("put", 1.2, 50), start="2026-10-01T00:00:00Z"))]))
        self.assert_quiet()
        charts = self.browser.evaluate(CHARTS)
        self.assertEqual([line["name"] for line in charts[0]["lines"]], ["measured", "baseline"])
        trend = charts[1]
        self.assertIn("moved most", trend["name"])
        self.assertEqual(len(trend["lines"]), 12)
        first = [run_["results"][0]["stats"]["p50"] for run_ in runs]
        middle = sorted(first)[2] / 2 + sorted(first)[3] / 2
        for point, value in zip(trend["lines"][0]["data"], first):
            self.assertAlmostEqual(point["y"], value / middle, places=6)
        self.assertIn("24 worse", self.browser.evaluate("document.body.innerText"))

    def test_hostile_texts_inject_nothing(self):
        for width, dark in ((1280, False), (390, True)):
            self.open(self.make(page_reports.hostile(page_reports.full())), width, dark)
            self.assert_quiet()
            self.browser.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            self.assertEqual(self.browser.evaluate("typeof window.hacked"), "undefined")
            self.assertEqual(self.browser.evaluate("document.scripts.length"), 3)
            self.assertEqual(self.browser.evaluate("document.querySelectorAll('img, iframe, object, [onerror], a[href^=javascript]').length"), 0)
            self.assertIn("</script><script>window.hacked=1", self.browser.evaluate("document.body.innerText"))
            self.assert_no_sideways()

    def assert_no_sideways(self):
        wide, room = self.browser.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        self.assertLessEqual(wide, room)

    def test_narrow_screens_and_dark_mode(self):
        page = self.make(page_reports.full())
        seen = {}
        for width in (1280, 390):
            for dark in (False, True):
                self.open(page, width, dark)
                self.assert_quiet()
                self.assert_no_sideways()
                seen[width, dark] = self.browser.evaluate(
                    "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color, seriesColour(0)]")
        for light, dark in zip(seen[390, False], seen[390, True]):
            self.assertNotEqual(light, dark)
        self.assertEqual(seen[390, True], seen[1280, True])
        # The scheme changes while the page is open: charts follow.
        self.browser.look(1280, 900, dark=False)
        self.browser.wait_for("Chart.getChart(document.querySelector('#sweeps canvas')).data.datasets[0].borderColor === seriesColour(0)")

    def test_a_cluster(self):
        report = self.write("cluster.json", page_reports.cluster())
        page = self.folder / "page.html"
        start = time.monotonic()
        self.assertEqual(run("report", "html", report, "-o", page), (0, "", ""))
        made_s = time.monotonic() - start
        self.assertLessEqual(page.stat().st_size, 10e6)
        start = time.monotonic()
        self.open(page)
        open_s = time.monotonic() - start
        self.assert_no_sideways()
        self.assert_quiet()
        # The waits are 512 x 512; pointing at a cell names it.
        canvas = "document.querySelector('#moe .heat canvas')"
        self.browser.evaluate(f"""{{ const canvas = {canvas}, box = canvas.getBoundingClientRect();
            canvas.dispatchEvent(new PointerEvent('pointermove', {{clientX: box.right - 3, clientY: box.bottom - 3}})); }}""")
        value = page_reports.moe_point(512, slow=77)["waits"][0]["wait_us"][511][511]
        words = self.browser.evaluate("document.querySelector('#moe output').textContent")
        self.assertRegex(words, r"^waits PE 511, is waited for PE 511: [0-9.]+ us$")
        self.assertTrue(close_to(words.split()[-2], value))
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('#sweeps figure').length"), 20)
        print(f"512 x 512: made in {made_s:.2f} s, {page.stat().st_size / 1e6:.1f} MB, open after {open_s:.2f} s")
        if SPEED_COUNTS:
            self.assertLessEqual(made_s, 3)
            self.assertLessEqual(open_s, 2)

    def test_what_the_tool_measures(self):
        report = self.folder / "bench.json"
        self.assertEqual(run("run", "-n", "2", "bench", "put", "-b", "8", "-e", "4K", "--iters", "20", "--json", report)[0], 0)
        page = self.folder / "page.html"
        self.assertEqual(run("report", "html", report, "-o", page)[0], 0)
        self.open(page)
        self.assert_quiet()
        document = json.loads(report.read_text())
        results = self.table("document.querySelector('#results figure')")
        place = results["columns"].index("p50")
        for cells, row in zip(results["rows"], document["results"]):
            self.assertTrue(close_to(cells[place], row["stats"]["p50"]))
        self.assertEqual(len(results["rows"]), len(document["results"]))


if __name__ == "__main__":
    unittest.main()
