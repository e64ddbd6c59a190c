/**
 * Hide the rows of a table that the form above it does not ask for, and say how many are shown. Every form asks for a part of the
 * name of a row, which is the text of its first cell unless it says another.
 * @param {string} table - its class
 * @param {string} what - its rows are
 * @param {(row: HTMLTableRowElement, wanted: FormData) => boolean} fits - whether a row is what else the form asks for
 */
function filterRows(table, what, fits) {
  const form = document.querySelector(".filters"), rows = [...document.querySelectorAll(`.${table} tbody tr`)];
  const filter = () => {
    const wanted = new FormData(form), name = wanted.get("name").trim().toLowerCase();
    for (const row of rows) row.hidden = !((row.dataset.name ?? row.cells[0].textContent).toLowerCase().includes(name) && fits(row, wanted));
    document.getElementById("shown").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} ${what}`;
  };
  for (const event of ["input", "change"]) form.addEventListener(event, filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();
}
