// Line charts, drawn by Chart.js.

/** Round numbers for an axis: over a wide range powers of ten and, with room, multiples between; else even steps. */
function niceTicks(low, high, wanted) {
  const ticks = [];
  if (high / low >= 20) {
    const decades = Math.log10(high / low);
    const steps = decades > wanted / 2 ? [1] : decades > wanted / 3 ? [1, 3] : [1, 2, 5];
    const stride = Math.ceil(decades / wanted);
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1)
      if (stride < 2 || power % stride === 0)
        ticks.push(...steps.map((step) => step * 10 ** power));
  } else {
    const raw = (high - low) / wanted || 1;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw);
    for (let i = Math.ceil(low / step); i <= high / step && ticks.length < 100; i += 1)
      ticks.push(i * step);
  }
  return ticks.filter((value) => value >= low * 0.999 && value <= high * 1.001);
}

/** Ticks of the x axis: all values if they are few; otherwise every n-th category, powers of two for sizes, or round numbers. */
function xTicks(values, axis, wanted) {
  if (axis === "category") {
    const stride = Math.ceil(values.length / wanted);
    return values.filter((_, i) => i % stride === 0);
  }
  if (values.length <= wanted)
    return values;
  const low = values[0], high = values[values.length - 1];
  if (axis !== "size")
    return niceTicks(low, high, wanted);
  const first = Math.ceil(Math.log2(low)), last = Math.log2(high);
  const stride = Math.max(1, Math.ceil((last - first) / wanted));
  const ticks = [];
  for (let power = first; power <= last; power += stride)
    ticks.push(2 ** power);
  return ticks;
}

function seriesColour(i) {
  return styleValue("--series-" + (i % 12));
}

function dataset(series) {
  const measured = series.role === "measured";
  const colour = series.role === "limit" ? styleValue("--text") : seriesColour(series.colour);
  return {
    label: series.name,
    data: series.points.map(([x, y]) => ({ x, y })),
    borderColor: colour, backgroundColor: colour,
    borderWidth: measured ? 2 : 1.5,
    borderDash: series.role === "baseline" ? [6, 4] : series.role === "limit" ? [2, 3] : [],
    pointRadius: measured ? 2.5 : 0, pointHitRadius: 6,
    order: measured ? 0 : 1, clip: 6,
  };
}

function axisColours() {
  return { grid: { color: styleValue("--grid"), borderColor: styleValue("--line") }, ticksColour: styleValue("--muted") };
}

function lineOptions(block, view, narrow) {
  const points = view.series.flatMap((series) => series.points);
  const xs = [...new Set(points.map((point) => point[0]))].sort((a, b) => a - b);
  const ys = points.map((point) => point[1]);
  const low = Math.min(...ys) / 1.15, high = Math.max(...ys) * 1.15;
  const category = block.x_axis === "category";
  const xText = (x) => category ? block.x_labels[x] ?? "" : block.x_axis === "size" ? sizeText(x) : numberText(x);
  const { grid, ticksColour } = axisColours();
  return {
    animation: false, maintainAspectRatio: false, layout: { padding: { right: 14, top: 4 } },
    interaction: { mode: "nearest", axis: "xy", intersect: false },
    scales: {
      x: {
        type: category ? "linear" : "logarithmic", min: xs[0], max: xs[xs.length - 1], offset: xs.length === 1,
        title: { display: true, text: block.x_name, color: ticksColour }, grid,
        ticks: { color: ticksColour, callback: xText, maxRotation: category ? 45 : 0, autoSkip: false },
        afterBuildTicks: (axis) => { axis.ticks = xTicks(xs, block.x_axis, narrow ? 6 : 12).map((value) => ({ value })); },
      },
      y: {
        type: "logarithmic", min: low, max: high, grid,
        title: { display: true, text: view.name, color: ticksColour },
        ticks: { color: ticksColour, callback: numberText, autoSkip: false },
        afterBuildTicks: (axis) => { axis.ticks = niceTicks(low, high, 8).map((value) => ({ value })); },
      },
    },
    plugins: {
      legend: { display: view.series.length > 1, position: "bottom", align: "start",
        labels: { color: styleValue("--text"), boxWidth: 18, boxHeight: 0, padding: 8 } },
      tooltip: { callbacks: {
        title: (items) => items.length ? `${block.x_name} ${xText(items[0].parsed.x)}` : "",
        label: (item) => `${item.dataset.label}: ${numberText(item.parsed.y)}`,
      } },
    },
  };
}

/** A chart as a table: a row for each x, a column for each line. */
function chartTable(block, view) {
  const rows = new Map();
  view.series.forEach((series, i) => series.points.forEach(([x, y]) => {
    if (!rows.has(x))
      rows.set(x, [block.x_axis === "category" ? block.x_labels[x] : x, ...view.series.map(() => null)]);
    rows.get(x)[i + 1] = y;
  }));
  return {
    title: block.title + " " + view.name,
    columns: [{ name: block.x_name, kind: block.x_axis === "size" ? "size" : "number" },
      ...view.series.map((series) => ({ name: series.name, kind: "number" }))],
    rows: [...rows].sort((a, b) => a[0] - b[0]).map((entry) => entry[1]),
  };
}

const redraws = []; // functions that draw the charts again, after a change of the colour scheme or the width

function drawChart(block) {
  const canvas = make("canvas", {});
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", block.title);
  const holder = make("div", { className: "plot" }, canvas);
  const tables = make("div", {});
  let view = 0, chart = null;
  const draw = () => {
    const shown = block.views[view];
    chart?.destroy();
    // Leaves room for the lines of the legend below the chart; a letter takes about 7 pixels.
    const letters = shown.series.reduce((sum, series) => sum + series.name.length + 6, 0);
    const lines = shown.series.length > 1 ? Math.ceil(letters * 7 / Math.max(holder.clientWidth, 200)) : 0;
    holder.style.height = 280 + 20 * Math.min(lines, 12) + "px";
    chart = new Chart(canvas, { type: "line", data: { datasets: shown.series.map(dataset) },
      options: lineOptions(block, shown, holder.clientWidth < 500) });
  };
  const showTable = () => tables.replaceChildren(folded("Data", () => tableElement(chartTable(block, block.views[view]))));
  showTable();
  whenSeen(holder, () => { draw(); redraws.push(draw); });
  return card(block, choice(block.views.map((one) => one.name), (i) => { view = i; draw(); showTable(); }), holder, tables);
}
