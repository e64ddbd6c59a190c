filterRows("board", "rows", (row, wanted) => {
  const model = wanted.get("model"), models = row.dataset.models.split(/[^\w]+/), setting = wanted.get("setting");
  return !(model && !models.includes(model)) && !(setting && row.dataset.setting !== setting);
});
