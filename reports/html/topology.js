// The topology of a node as a picture.

function makeSvg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes))
    element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function drawRect(box) {
  return makeSvg("g", { class: `box ${box.kind} ${box.state}` },
    makeSvg("rect", { x: box.x, y: box.y, width: box.width, height: box.height, rx: 6 }));
}

function drawName(box) {
  return makeSvg("text", { x: box.x + 8, y: box.y + (box.kind === "nvlink" ? 16 : 15), class: "name " + box.kind }, box.label);
}

function drawDevice(box) {
  const group = drawRect(box);
  group.append(makeSvg("text", { x: box.x + box.width / 2, y: box.y + (box.detail ? 19 : box.height / 2 + 4), "text-anchor": "middle", class: "name" }, box.label));
  if (box.detail)
    group.append(makeSvg("text", { x: box.x + box.width / 2, y: box.y + 35, "text-anchor": "middle", class: "detail" }, box.detail));
  // Texts that are wider than their box are compressed to its width.
  for (const text of group.querySelectorAll("text"))
    if (text.textContent.length * (text.classList.contains("name") ? 7.4 : 6.2) > box.width - 6) {
      text.setAttribute("textLength", box.width - 10);
      text.setAttribute("lengthAdjust", "spacingAndGlyphs");
    }
  group.append(makeSvg("title", {}, [box.label, box.detail, ...box.tip].filter((line) => line).join("\n")));
  return group;
}

function drawLine(line) {
  const [x1, y1] = line.from, [x2, y2] = line.to;
  const lift = line.kind === "nvlink" && line.label ? Math.min(104, 30 + Math.abs(x2 - x1) / 9) : 0;
  const path = lift > 0 ? `M${x1},${y1} C${x1},${y1 - lift} ${x2},${y2 - lift} ${x2},${y2}`
    : `M${x1},${y1} C${x1},${y1 + (y2 - y1) / 2} ${x2},${y1 + (y2 - y1) / 2} ${x2},${y2}`;
  return makeSvg("path", { d: path, class: "line " + line.kind }, makeSvg("title", {}, line.label));
}

function drawTopology(block) {
  const devices = block.boxes.filter((box) => box.kind === "gpu" || box.kind === "nic");
  const others = block.boxes.filter((box) => !devices.includes(box));
  const picture = makeSvg("svg", { viewBox: `0 0 ${block.width} ${block.height}`, width: block.width, height: block.height, role: "img" },
    makeSvg("title", {}, block.title),
    ...others.map(drawRect), ...block.lines.map(drawLine), ...others.map(drawName), ...devices.map(drawDevice));
  const kinds = new Set(block.lines.map((line) => line.kind)), states = new Set(block.boxes.map((box) => box.state));
  const words = [["near", "by a PCIe switch"], ["node", "within a NUMA node"], ["far", "across NUMA nodes"], ["nvlink", "GPU links"]]
    .filter(([kind]) => kinds.has(kind));
  const key = [...words.map(([kind, text]) => make("span", { className: "key line " + kind }, text)),
    ...[["faulty", "NIC with an error"], ["hot", "hot NIC"], ["idle", "idle NIC"]].filter(([state]) => states.has(state)).map(([state, text]) => make("span", { className: "key " + state }, text))];
  return card(block, make("div", { className: "scroll" }, picture), make("div", { className: "legend" }, ...key));
}
