// Tables: sorted by a click on a header, filtered, a page of rows at a time.

const rowsAtOnce = 30;

function tableRow(row, columns) {
  return make("tr", {}, ...columns.map((column, i) => {
    const value = row[i];
    const cell = make("td", { className: typeof value === "number" ? "number" : column.kind, textContent: cellText(value, column.kind) });
    if (column.kind === "status" && typeof value === "string")
      cell.dataset.status = value;
    return cell;
  }));
}

/** null and text behind numbers. */
function compareCells(a, b) {
  if (typeof a === "number" && typeof b === "number")
    return a - b;
  if (typeof a === typeof b && a !== null)
    return a < b ? -1 : a > b ? 1 : 0;
  return (typeof a === "number" ? 0 : a === null ? 2 : 1) - (typeof b === "number" ? 0 : b === null ? 2 : 1);
}

/** Columns in which a row says something. */
function usedColumns(columns, rows) {
  return columns.map((_, i) => i).filter((i) => rows.some((row) => row[i] !== null && row[i] !== undefined && row[i] !== ""));
}

function csvText(columns, rows) {
  // Text that begins like a formula gets an apostrophe, as in report csv.
  const harmless = (value) => typeof value === "string" && /^[=+@\uff1d\uff0b\uff0d\uff20-]/.test(value) && !Number.isFinite(Number(value)) ? "'" + value : value;
  const quoted = (value) => {
    const text = value === null || value === undefined ? "" : String(harmless(value));
    return /[",;\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  };
  return [columns.map((column) => column.name), ...rows].map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n";
}

function csvButton(columns, rows, title) {
  return make("button", {
    type: "button", textContent: "CSV", title: "Save this table", onclick: () => {
      const address = URL.createObjectURL(new Blob([csvText(columns, rows())], { type: "text/csv" }));
      make("a", { href: address, download: (title || "table").replace(/[^A-Za-z0-9]+/g, "-").slice(0, 60) + ".csv" }).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    },
  });
}

/** The table itself: {columns: [{name, kind}], rows: [[...]], note}. */
function tableElement(block) {
  const used = usedColumns(block.columns, block.rows);
  const columns = used.map((i) => block.columns[i]);
  const all = block.rows.map((row) => used.map((i) => row[i] ?? null));
  let rows = all, limit = rowsAtOnce, sorted = null, upwards = true;
  const body = make("tbody", {});
  const more = make("button", { type: "button", onclick: () => { limit += 10 * rowsAtOnce; show(); } });
  const show = () => {
    body.replaceChildren(...rows.slice(0, limit).map((row) => tableRow(row, columns)));
    more.hidden = rows.length <= limit;
    more.textContent = `more of ${rows.length} rows`;
  };
  const sortBy = (i) => {
    upwards = sorted === i ? !upwards : true;
    sorted = i;
    rows = [...rows].sort((a, b) => (upwards ? 1 : -1) * compareCells(a[i], b[i]));
    headers.forEach((header, j) => header.setAttribute("aria-sort", i !== j ? "none" : upwards ? "ascending" : "descending"));
    show();
  };
  const headers = columns.map((column, i) => make("th", { scope: "col", className: column.kind },
    make("button", { type: "button", textContent: column.name, onclick: () => sortBy(i) })));
  const tools = make("div", { className: "tools" });
  if (all.length > 12) {
    const filter = make("input", { type: "search", placeholder: "filter " + all.length + " rows", ariaLabel: "filter rows" });
    filter.addEventListener("input", () => {
      const words = filter.value.toLowerCase().split(" ").filter((word) => word);
      rows = all.filter((row) => {
        const text = row.map((value, i) => cellText(value, columns[i].kind)).join(" ").toLowerCase();
        return words.every((word) => text.includes(word));
      });
      show();
    });
    tools.append(filter);
  }
  tools.append(csvButton(columns, () => rows, block.title));
  show();
  return make("div", {}, tools,
    make("div", { className: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...headers)), body)),
    more, block.note ? make("p", { className: "note" }, block.note) : null);
}

function drawTable(block) {
  if (!block.folded)
    return card(block, tableElement(block));
  const element = card({ type: "table" }, folded(`${block.title} (${block.rows.length})`, () => tableElement(block)));
  return element;
}

function findingItem(item) {
  const marks = { error: "✗", warning: "!", info: "i" };
  return make("li", { className: item.severity },
    make("span", { className: "mark", title: item.severity }, marks[item.severity]),
    make("div", {},
      make("p", {}, make("strong", {}, item.id), " ", make("span", { className: "subject" }, item.subject),
        item.where ? make("span", { className: "where" }, item.where) : null),
      make("p", {}, item.message),
      item.fix ? make("code", { className: "fix" }, item.fix) : null));
}

/** Errors and warnings; what is only worth knowing is folded where there is much of it. */
function drawFindings(block) {
  const list = (items) => make("ul", {}, ...items.map(findingItem));
  const infos = block.items.filter((item) => item.severity === "info");
  const first = infos.length > 3 ? block.items.filter((item) => item.severity !== "info") : block.items;
  return card(block, first.length ? list(first) : null,
    infos.length > 3 ? folded(`${infos.length} more that are only worth knowing`, () => list(infos)) : null);
}
