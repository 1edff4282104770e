// Bar charts, drawn by Chart.js. A mark across a bar shows what its values are compared with.

/** The axis includes the marks only if the largest value is at least this share of the lowest mark. */
const markShare = 0.05;

/** A plugin of Chart.js that draws each mark as a line across its bar. */
function markPlugin(bars) {
  return {
    id: "marks",
    afterDatasetsDraw: (chart) => {
      const { x, y } = chart.scales, context = chart.ctx;
      const half = (y.bottom - y.top) / bars.length / 2 - 2;
      context.save();
      context.strokeStyle = styleValue("--text");
      context.lineWidth = 2;
      bars.forEach((bar, i) => {
        if (bar.mark === null || bar.mark > x.max)
          return;
        const across = x.getPixelForValue(bar.mark), middle = y.getPixelForValue(i);
        context.beginPath();
        context.moveTo(across, middle - half);
        context.lineTo(across, middle + half);
        context.stroke();
      });
      context.restore();
    },
  };
}

/** The colour of the i-th value of a bar: the first two belong together. */
function barColour(i) {
  return seriesColour([0, 5, 1, 2, 3, 4][i % 6]);
}

const barWords = { hot: " HOT", faulty: " ERROR" };

/** The meaning of the marks; if the axis does not include them, also the lowest one. */
function markNote(block, largest, marks) {
  if (!marks.length)
    return null;
  if (largest >= markShare * Math.min(...marks))
    return make("p", { className: "legend" }, make("span", { className: "key mark-line" }, block.mark_name));
  return make("p", { className: "note" }, `${block.mark_name}: ${numberText(Math.min(...marks))} ${block.unit}, beyond this axis`);
}

function drawBars(block) {
  const canvas = make("canvas", {});
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", block.title);
  const holder = make("div", { className: "plot" }, canvas);
  holder.style.height = 70 + (14 + 10 * block.names.length) * block.bars.length + "px";
  const largest = Math.max(...block.bars.flatMap((bar) => bar.values.map((value) => value ?? 0)));
  const marks = block.bars.map((bar) => bar.mark).filter((mark) => mark !== null);
  const reach = marks.length && largest >= markShare * Math.min(...marks) ? Math.max(...marks) * 1.02 : undefined;
  const colour = (bar, i) => bar.state === "usual" ? barColour(i) : styleValue(i === 0 ? "--bad" : "--bad-2");
  const percent = (bar, value) => bar.mark && value !== null ? `, ${numberText(Number((value / bar.mark * 100).toPrecision(3)))}% of ${block.mark_name}` : "";
  let chart = null;
  const draw = () => {
    chart?.destroy();
    const { grid, ticksColour } = axisColours();
    chart = new Chart(canvas, {
      type: "bar",
      data: {
        labels: block.bars.map((bar) => bar.name + (barWords[bar.state] ?? "")),
        datasets: block.names.map((name, i) => ({
          label: name, data: block.bars.map((bar) => bar.values[i]), backgroundColor: block.bars.map((bar) => colour(bar, i)),
        })),
      },
      plugins: [markPlugin(block.bars)],
      options: {
        animation: false, maintainAspectRatio: false, indexAxis: "y", layout: { padding: { right: 14 } },
        scales: {
          x: { beginAtZero: true, suggestedMax: reach, grid, ticks: { color: ticksColour, callback: numberText, maxRotation: 0 },
            title: { display: true, text: block.unit, color: ticksColour } },
          y: { grid: { display: false }, ticks: { color: styleValue("--text"), autoSkip: false } },
        },
        plugins: {
          legend: { position: "bottom", align: "start", onClick: null,
            labels: { color: styleValue("--text"), boxWidth: 14, generateLabels: () => block.names.map((name, i) => ({
              text: name, fillStyle: barColour(i), strokeStyle: "transparent", fontColor: styleValue("--text"), datasetIndex: i })) } },
          tooltip: { callbacks: { label: (item) =>
            `${item.dataset.label}: ${numberText(item.parsed.x)} ${block.unit}${percent(block.bars[item.dataIndex], item.parsed.x)}` } },
        },
      },
    });
  };
  whenSeen(holder, () => { draw(); redraws.push(draw); });
  return card(block, holder, markNote(block, largest, marks));
}
