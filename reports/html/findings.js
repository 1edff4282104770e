// Findings, grouped by id, and the verdicts on the parts of a check.

const marks = { error: "✗", fail: "✗", warning: "!", info: "i", pass: "✓", skipped: "-" };

function findingItem(item) {
  const many = item.count > 1;
  return make("li", { className: item.severity },
    make("span", { className: "mark", title: item.severity }, marks[item.severity]),
    make("div", {},
      make("p", {}, make("strong", {}, item.id), many ? make("span", { className: "count" }, ` ×${item.count}`) : null, " ",
        make("span", { className: "subject" }, item.subject),
        item.where ? make("span", { className: "where" }, item.where) : null),
      make("p", {}, item.message),
      item.fix ? make("code", { className: "fix" }, item.fix) : null,
      many ? folded(`all ${item.count}`, () => tableElement(item.all)) : null));
}

/** Lists the findings. If there are more than three infos, they are folded. */
function drawFindings(block) {
  const list = (items) => make("ul", {}, ...items.map(findingItem));
  const infos = block.items.filter((item) => item.severity === "info");
  const first = infos.length > 3 ? block.items.filter((item) => item.severity !== "info") : block.items;
  return card(block, first.length ? list(first) : null,
    infos.length > 3 ? folded(`${infos.length} more that are only worth knowing`, () => list(infos)) : null,
    block.note ? make("p", { className: "note" }, block.note) : null);
}

/** A line for each part of a check: its result, and the reason. */
function drawParts(block) {
  return card(block, make("ul", {}, ...block.parts.map((part) => make("li", { className: part.status },
    make("span", { className: "mark", title: part.status }, marks[part.status] ?? "?"),
    make("p", {}, make("strong", { title: part.title }, part.name), " ", part.reason)))));
}
