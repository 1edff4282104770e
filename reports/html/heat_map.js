// Heat maps: matrices as coloured cells.

const heatColours = {
  light: [[232, 239, 244], [250, 214, 137], [221, 92, 40], [122, 12, 36]],
  dark: [[33, 47, 60], [122, 91, 28], [217, 95, 36], [255, 176, 150]],
};

/** The colour (red, green, blue) at `share` of the scale, from good (0) to bad (1). */
function heatColour(share) {
  const stops = isDark() ? heatColours.dark : heatColours.light;
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const i = Math.min(Math.floor(at), stops.length - 2);
  return stops[i].map((low, k) => Math.round(low + (stops[i + 1][k] - low) * (at - i)));
}

function badness(view, value) {
  const share = view.high > view.low ? (value - view.low) / (view.high - view.low) : 0;
  return view.less_is_better ? share : 1 - share;
}

/** An image of the matrix with one pixel for each cell. */
function heatPixels(block, view) {
  const width = block.columns.length, height = block.rows.length;
  const image = new ImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer); // assumes little endian, which all machines with browsers are
  const ramp = Array.from({ length: 256 }, (_, i) => {
    const [red, green, blue] = heatColour(i / 255);
    return (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
  });
  view.values.forEach((row, i) => row.forEach((value, j) => {
    if (value === null || (block.skip_diagonal && i === j))
      return; // the pixel stays transparent
    pixels[i * width + j] = ramp[Math.round(Math.min(Math.max(badness(view, value), 0), 1) * 255)];
  }));
  const canvas = new OffscreenCanvas(width, height);
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

/** Only every n-th label is drawn, so that they do not touch: returns n. */
function labelStride(cell) {
  return Math.max(1, Math.ceil(14 / cell));
}

/** Places the labels and the cells of a heat map of this width. */
function heatLayout(block, context, width) {
  context.font = "12px system-ui, sans-serif";
  const widest = (labels) => Math.min(160, Math.max(...labels.map((label) => context.measureText(label).width)));
  const left = Math.ceil(widest(block.rows)) + 10;
  const top = Math.ceil(widest(block.columns)) + 10;
  const largest = block.rows.length > 24 ? 18 : 44;
  const cell = Math.max(1, Math.min(largest, Math.floor((width - left - 2) / block.columns.length)));
  return { left, top, cell, width: left + cell * block.columns.length + 2, height: top + cell * block.rows.length + 2 };
}

function paintLabels(block, context, layout) {
  context.fillStyle = styleValue("--muted");
  context.textBaseline = "middle";
  const stride = labelStride(layout.cell);
  context.textAlign = "right";
  block.rows.forEach((label, i) => i % stride === 0 && context.fillText(label, layout.left - 6, layout.top + (i + 0.5) * layout.cell, layout.left - 8));
  context.textAlign = "left";
  block.columns.forEach((label, j) => {
    if (j % stride !== 0)
      return;
    context.save();
    context.translate(layout.left + (j + 0.5) * layout.cell, layout.top - 6);
    context.rotate(-Math.PI / 2);
    context.fillText(label, 0, 0, layout.top - 8);
    context.restore();
  });
}

/** Writes the numbers into the cells, if these are large enough. */
function paintValues(block, view, context, layout) {
  if (layout.cell < 38)
    return;
  context.textAlign = "center";
  context.font = "11px system-ui, sans-serif";
  view.values.forEach((row, i) => row.forEach((value, j) => {
    if (value === null)
      return;
    const plain = block.skip_diagonal && i === j;
    const strong = badness(view, value) > 0.6;
    context.fillStyle = plain ? styleValue("--muted") : strong === isDark() ? "#111" : strong ? "#fff" : styleValue("--text");
    context.fillText(numberText(Number(value.toPrecision(3))), layout.left + (j + 0.5) * layout.cell, layout.top + (i + 0.5) * layout.cell, layout.cell - 4);
  }));
}

function legend(view) {
  const bar = make("canvas", { className: "ramp", width: 128, height: 1 });
  const context = bar.getContext("2d");
  for (let i = 0; i < 128; i += 1) {
    context.fillStyle = `rgb(${heatColour(i / 127).join(",")})`;
    context.fillRect(i, 0, 1, 1);
  }
  const [good, bad] = view.less_is_better ? [view.low, view.high] : [view.high, view.low];
  const text = (value) => `${numberText(value)} ${view.unit}`;
  return make("div", { className: "legend" }, text(good), bar, text(bad));
}

/** A table shows at most this many rows and columns of a matrix at once; the reader selects the part. */
const tablePart = 64;

function heatTable(block, view) {
  const holder = make("div", {});
  const show = (row, column) => {
    const columns = block.columns.slice(column, column + tablePart);
    holder.replaceChildren(tableElement({
      title: `${block.title} ${view.name}`,
      columns: [{ name: `${block.row_name} \\ ${block.column_name} [${view.unit}]`, kind: "text" },
        ...columns.map((name) => ({ name, kind: "number" }))],
      rows: block.rows.slice(row, row + tablePart).map((name, i) => [name, ...view.values[row + i].slice(column, column + tablePart)]),
    }));
  };
  const picker = (labels, choose) => labels.length <= tablePart ? null : make("select", { onchange: (event) => choose(Number(event.target.value)) },
    ...Array.from({ length: Math.ceil(labels.length / tablePart) }, (_, i) => make("option", { value: i * tablePart },
      `${labels[i * tablePart]} to ${labels[Math.min((i + 1) * tablePart, labels.length) - 1]}`)));
  let row = 0, column = 0;
  const pickers = [picker(block.rows, (at) => { row = at; show(row, column); }), picker(block.columns, (at) => { column = at; show(row, column); })];
  show(0, 0);
  return make("div", {}, make("div", { className: "tools" }, ...pickers), holder);
}

function drawHeatMap(block) {
  const canvas = make("canvas", {});
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", block.title);
  const holder = make("div", { className: "scroll heat" }, canvas);
  const legends = make("div", {}), tables = make("div", {});
  const readout = make("output", { className: "readout" }, `rows: ${block.row_name}, columns: ${block.column_name}`);
  let view = block.views[0], layout = null;
  const draw = () => {
    const context = canvas.getContext("2d");
    layout = heatLayout(block, context, holder.clientWidth);
    const density = devicePixelRatio || 1;
    canvas.width = layout.width * density;
    canvas.height = layout.height * density;
    canvas.style.width = layout.width + "px";
    canvas.style.height = layout.height + "px";
    context.scale(density, density);
    context.font = "12px system-ui, sans-serif";
    context.imageSmoothingEnabled = false;
    context.drawImage(heatPixels(block, view), layout.left, layout.top, layout.cell * block.columns.length, layout.cell * block.rows.length);
    paintLabels(block, context, layout);
    paintValues(block, view, context, layout);
    legends.replaceChildren(legend(view));
  };
  const point = (event) => {
    const box = canvas.getBoundingClientRect();
    const j = Math.floor((event.clientX - box.left - layout.left) / layout.cell);
    const i = Math.floor((event.clientY - box.top - layout.top) / layout.cell);
    const value = view.values[i]?.[j];
    if (value !== undefined)
      readout.textContent = `${block.row_name} ${block.rows[i]}, ${block.column_name} ${block.columns[j]}: ${value === null ? "unknown" : numberText(value) + " " + view.unit}`;
  };
  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerdown", point);
  const showTable = () => tables.replaceChildren(folded("Data", () => heatTable(block, view)));
  showTable();
  whenSeen(holder, () => { draw(); redraws.push(draw); });
  return card(block, ...block.notes.map((text) => make("p", { className: "verdict-line" }, text)),
    choice(block.views.map((one) => one.name), (i) => { view = block.views[i]; draw(); showTable(); }), legends, holder, readout, tables);
}
