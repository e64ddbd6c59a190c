"use strict";
/** A table is sorted by the column whose heading is pressed, and the other way when it is pressed again. Cells without a value stay last. */
function sort(header) {
  const table = header.closest("table"), body = table.tBodies[0], column = header.cellIndex;
  const down = header.ariaSort ? header.ariaSort === "ascending" : "down" in header.dataset;
  for (const other of table.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
  header.ariaSort = down ? "descending" : "ascending";
  const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
  const compare = (a, b) => key(a).localeCompare(key(b), "en", { numeric: false });
  const numeric = header.classList.contains("number");
  const rows = [...body.rows].filter(key).sort((a, b) => (numeric ? key(a) - key(b) : compare(a, b)));
  const last = [...body.rows].filter((row) => !key(row));
  body.append(...(down ? rows.toReversed() : rows), ...last);
}

for (const button of document.querySelectorAll("thead button")) button.addEventListener("click", () => sort(button.closest("th")));
