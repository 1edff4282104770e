// Tables, which the reader can sort (by a click on a header) and filter; more rows are shown on request.

const rowsAtOnce = 30;

const lineLetters = 40; // letters of a text that stays on one line
const cellLetters = 64; // letters of the widest line of a longer text

/**
 * A cell's text on at most two lines, as wide as that requires. A text that is too long for that is cut: its tooltip has
 * all of it, and a click shows it.
 */
function cellContent(text) {
  if (text.length <= lineLetters)
    return text;
  // Lines break at blanks: the first line may end as early as the length of the longest word before its end.
  const longest = Math.max(...text.split(/\s+/).map((word) => word.length));
  const letters = Math.min(cellLetters, Math.ceil(text.length / 2) + Math.min(longest, 12));
  const content = make("div", { className: "long", title: text, onclick: () => content.classList.toggle("open") }, text);
  content.style.width = letters + "ch";
  return content;
}

function tableRow(row, columns) {
  return make("tr", {}, ...columns.map((column, i) => {
    const value = row[i];
    const cell = make("td", { className: typeof value === "number" ? "number" : column.kind }, cellContent(cellText(value, column.kind)));
    if (column.kind === "status" && typeof value === "string")
      cell.dataset.status = value;
    return cell;
  }));
}

/** The order of two cells: numbers, then texts, then null. */
function compareCells(a, b) {
  if (typeof a === "number" && typeof b === "number")
    return a - b;
  if (typeof a === typeof b && a !== null)
    return a < b ? -1 : a > b ? 1 : 0;
  return (typeof a === "number" ? 0 : a === null ? 2 : 1) - (typeof b === "number" ? 0 : b === null ? 2 : 1);
}

/** The indices of the columns in which at least one row is not empty. */
function usedColumns(columns, rows) {
  return columns.map((_, i) => i).filter((i) => rows.some((row) => row[i] !== null && row[i] !== undefined && row[i] !== ""));
}

/** The indices of columns with the same value in all rows of a wide table: it is written once, above the table. */
function commonColumns(columns, rows) {
  if (rows.length < 4 || columns.length <= 12)
    return [];
  return columns.map((_, i) => i).filter((i) => columns[i].kind !== "status" && rows.every((row) => row[i] === rows[0][i]));
}

function csvText(columns, rows) {
  // Text that begins like a formula gets an apostrophe, as in `report csv`.
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

/** The table of a block: {columns: [{name, kind}], rows: [[...]], note}. */
function tableElement(block) {
  const said = usedColumns(block.columns, block.rows);
  const common = commonColumns(said.map((i) => block.columns[i]), block.rows.map((row) => said.map((i) => row[i] ?? null))).map((i) => said[i]);
  // The common columns come last: they are saved and filtered, but not drawn.
  const used = [...said.filter((i) => !common.includes(i)), ...common];
  const drawn = used.length - common.length;
  const columns = used.map((i) => block.columns[i]);
  const all = block.rows.map((row) => used.map((i) => row[i] ?? null));
  let rows = all, limit = rowsAtOnce, sorted = null, upwards = true;
  const body = make("tbody", {});
  const more = make("button", { type: "button", onclick: () => { limit += 10 * rowsAtOnce; show(); } });
  const show = () => {
    body.replaceChildren(...rows.slice(0, limit).map((row) => tableRow(row, columns.slice(0, drawn))));
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
  const headers = columns.slice(0, drawn).map((column, i) => make("th", { scope: "col", className: column.kind },
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
  const sameText = common.map((i) => `${block.columns[i].name} ${cellText(block.rows[0][i], block.columns[i].kind)}`).join(", ");
  return make("div", {}, common.length ? make("p", { className: "note" }, "In all rows: " + sameText) : null, tools,
    make("div", { className: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...headers)), body)),
    more, block.note ? make("p", { className: "note" }, block.note) : null);
}

function drawTable(block) {
  if (!block.folded)
    return card(block, tableElement(block));
  const element = card({ type: "table" }, folded(`${block.title} (${block.rows.length})`, () => tableElement(block)));
  return element;
}
