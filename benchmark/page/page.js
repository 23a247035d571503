"use strict";
/* Colour scheme, the switch of all tables, sorting, and what is behind a cell. */
(() => {
  const root = document.documentElement;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  root.classList.add("script");

  // --- light and dark ---------------------------------------------------------------------------------------------
  const systemDark = window.matchMedia("(prefers-color-scheme: dark)");
  const theme = document.getElementById("theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemDark.matches);
  const name = () => {
    root.dataset.scheme = isDark() ? "dark" : "light";
    theme.textContent = isDark() ? "Light colours" : "Dark colours";  // what a press gives
  };
  const schemeChanged = () => {
    name();
    document.dispatchEvent(new CustomEvent("scheme"));
  };
  theme.hidden = false;
  name();
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    schemeChanged();
  });
  systemDark.addEventListener("change", schemeChanged);

  // --- which numbers ----------------------------------------------------------------------------------------------
  const announce = (text) => { document.getElementById("announcement").textContent = text; };
  const show = (choice) => {
    document.body.dataset.show = choice;
    hide();
    for (const table of all("table.grid.sorted")) sort(table);  // the order is that of the numbers shown
  };
  for (const input of all("input[name=show]")) {
    input.addEventListener("change", () => show(input.value));
    if (input.checked) document.body.dataset.show = input.value;  // browsers keep a choice over a reload
  }

  // --- sorting ----------------------------------------------------------------------------------------------------
  const groupsOf = new Map(all("table.grid").map((table) => [table, all("tbody", table).map((body) => [...body.rows])]));

  const keyOf = (row, column) => {
    if (column < 0) return (row.querySelector("th .full") ?? row.querySelector("th")).textContent.trim();
    const key = row.querySelectorAll("td")[column].dataset[document.body.dataset.show];
    return key === "" ? null : Number(key);
  };
  const compare = (a, b, sign) => {
    if (a === null || b === null) return (a === null) - (b === null);  // missing ones last, whatever the direction
    return sign * (typeof a === "string" ? a.localeCompare(b, "en") : a - b);
  };
  const sort = (table) => {
    const bodies = all("tbody", table);
    const header = table.querySelector("th[aria-sort]");
    table.classList.toggle("sorted", header !== null);
    const groups = groupsOf.get(table);
    if (header === null) {
      bodies.forEach((body, index) => body.append(...groups[index]));
    } else {
      const column = Number(header.querySelector("button").dataset.column);
      const sign = header.getAttribute("aria-sort") === "ascending" ? 1 : -1;
      const keyed = groups.flat().map((row) => [keyOf(row, column), row]);
      keyed.sort(([a], [b]) => compare(a, b, sign));
      bodies[0].append(...keyed.map(([, row]) => row));
    }
    for (const body of bodies) body.hidden = body.rows.length === 0;
  };
  for (const button of all("table.grid button")) {
    const best = button.dataset.better === "higher" ? "descending" : "ascending";
    const worst = best === "ascending" ? "descending" : "ascending";
    const next = {none: best, [best]: worst, [worst]: "none"};
    button.addEventListener("click", () => {
      const table = button.closest("table");
      const order = next[button.parentElement.getAttribute("aria-sort") ?? "none"];
      for (const header of all("th[aria-sort]", table)) header.removeAttribute("aria-sort");
      if (order !== "none") button.parentElement.setAttribute("aria-sort", order);
      sort(table);
      announce(order === "none" ? "Rows as in the paper" : `Sorted by ${button.dataset.name}, ${order}`);
    });
  }

  // --- what is behind a cell --------------------------------------------------------------------------------------
  const detail = document.getElementById("detail");
  let open = null;
  let closing = 0;

  const place = (cell) => {
    const at = cell.getBoundingClientRect();
    const size = detail.getBoundingClientRect();
    const right = (selector) => cell.closest(selector).getBoundingClientRect().right;
    const beside = Math.min(right("table"), right(".scroll")) + 12;
    if (beside + size.width + 12 <= window.innerWidth) {  // then it hides neither numbers nor notes
      detail.style.left = `${beside}px`;
      detail.style.top = `${Math.max(12, Math.min(at.top, window.innerHeight - size.height - 12))}px`;
      return;
    }
    const below = at.bottom + 6 + size.height <= window.innerHeight || at.top < size.height + 6;
    const left = Math.min(at.left, window.innerWidth - size.width - 12);
    detail.style.left = `${Math.max(12, left)}px`;
    detail.style.top = `${below ? at.bottom + 6 : at.top - size.height - 6}px`;
  };
  const reveal = (cell) => {
    window.clearTimeout(closing);
    if (open === cell) return;
    hide();
    const source = document.getElementById(cell.getAttribute("aria-describedby"));
    detail.replaceChildren(...[...source.children].map((child) => child.cloneNode(true)));
    const wanted = detail.querySelector(`[data-first=${document.body.dataset.show}]`);
    wanted?.parentElement.prepend(wanted);  // the number that the cell shows
    detail.hidden = false;
    cell.dataset.open = "";
    open = cell;
    place(cell);
  };
  function hide() {
    window.clearTimeout(closing);
    detail.hidden = true;
    if (open !== null) delete open.dataset.open;
    open = null;
  }
  const hideSoon = () => {
    window.clearTimeout(closing);
    closing = window.setTimeout(() => {
      const focused = document.activeElement?.closest("table.grid td");
      if (focused) reveal(focused); else hide();
    }, 150);
  };
  const cellAt = (event) => event.target.closest?.("table.grid td");

  document.addEventListener("mouseover", (event) => {
    if (cellAt(event)) reveal(cellAt(event));
    else if (detail.contains(event.target)) window.clearTimeout(closing);
    else if (open !== null) hideSoon();
  });
  document.addEventListener("focusin", (event) => { if (cellAt(event)) reveal(cellAt(event)); });
  document.addEventListener("focusout", (event) => { if (cellAt(event)) hideSoon(); });
  window.addEventListener("scroll", () => { if (open !== null) place(open); }, {passive: true, capture: true});
  window.addEventListener("resize", hide);

  // --- the keyboard: one stop a table, arrow keys within it -------------------------------------------------------
  const stop = (table, cell) => {
    for (const other of all("td[tabindex='0']", table)) other.tabIndex = -1;
    cell.tabIndex = 0;
  };
  for (const table of groupsOf.keys()) stop(table, table.querySelector("tbody td"));
  document.addEventListener("focusin", (event) => {
    if (cellAt(event)) stop(cellAt(event).closest("table"), cellAt(event));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    const cell = cellAt(event);
    if (!cell || event.ctrlKey || event.altKey || event.metaKey) return;
    const rows = all("tbody tr", cell.closest("table")).map((row) => all("td", row));
    const row = rows.findIndex((cells) => cells.includes(cell));
    const column = rows[row].indexOf(cell);
    const last = rows[row].length - 1;
    const target = {
      ArrowLeft: rows[row][column - 1], ArrowRight: rows[row][column + 1], Home: rows[row][0], End: rows[row][last],
      ArrowUp: rows[row - 1]?.[column], ArrowDown: rows[row + 1]?.[column],
    };
    if (!(event.key in target)) return;
    event.preventDefault();
    target[event.key]?.focus();
  });
})();
