filterRows("board", "rows", (row, wanted) => {
  const model = wanted.get("model"), models = row.dataset.models.split(/[^\w]+/), setting = wanted.get("setting");
  return !(model && !models.includes(model)) && !(setting && row.dataset.setting !== setting);
});
/** Which groups of columns are shown. */
const columns = document.querySelector(".filters [name=columns]");
const show = () => document.querySelectorAll(".boards").forEach((board) => { board.dataset.columns = columns.value; });
columns.addEventListener("change", show);
show();
