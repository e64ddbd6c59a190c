filterRows("board", "rows", (row, wanted) => {
  const model = wanted.get("model"), models = row.dataset.models.split(/[^\w]+/), setting = wanted.get("setting");
  if ((model && !models.includes(model)) || (setting && row.dataset.setting !== setting)) return false;
  return !(wanted.has("told") && row.dataset.told) && !(wanted.has("many") && !("many" in row.dataset));
});
/** Which groups of columns are shown. */
const columns = document.querySelector(".filters [name=columns]");
if (columns) {
  const show = () => document.querySelectorAll(".boards").forEach((board) => { board.dataset.columns = columns.value; });
  columns.addEventListener("change", show);
  show();
}
