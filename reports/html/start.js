// Reads the model of the page and draws its blocks, one after the other.

const drawers = {
  table: drawTable, chart: drawChart, bars: drawBars, heatmap: drawHeatMap, topology: drawTopology, findings: drawFindings,
  parts: drawParts,
  note: (block) => make("p", { className: "note" }, block.text),
};

function drawPage(model) {
  document.title = model.title;
  document.getElementById("top").append(
    make("h1", {}, model.title),
    make("p", { className: "verdict " + model.verdict.level }, model.verdict.text),
    model.verdict.detail ? make("p", { className: "detail" }, model.verdict.detail) : "",
    model.verdict.counts ? make("p", { className: "note" }, model.verdict.counts + ".") : "",
    make("dl", {}, ...model.facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])),
    model.note ? make("p", { className: "note" }, model.note) : "");
  document.getElementById("contents").append(...model.sections.map((section) =>
    make("a", { href: "#" + section.id }, section.title)));
  const page = document.getElementById("page");
  for (const section of model.sections) {
    const element = make("section", { id: section.id }, make("h2", {}, section.title));
    page.append(element);
    element.append(...section.blocks.map((block) => drawers[block.type](block)));
  }
}

Chart.defaults.font.family = "system-ui, sans-serif";
drawPage(JSON.parse(document.getElementById("model").textContent));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraws.forEach((redraw) => redraw()));
let lastWidth = innerWidth;
addEventListener("resize", () => {
  if (innerWidth !== lastWidth)
    redraws.forEach((redraw) => redraw());
  lastWidth = innerWidth;
});
document.documentElement.dataset.drawn = "yes";
