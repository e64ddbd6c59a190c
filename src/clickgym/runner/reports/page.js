const data = JSON.parse(document.getElementById("data").textContent);
const form = document.getElementById("controls");
const darkSystem = matchMedia("(prefers-color-scheme: dark)");
const TOUCH = matchMedia("(pointer: coarse)").matches; // there a drag scrolls the page
let printing = false;

/** What is chosen. Where there is but one, there is no control for it. */
function chosen() {
  const values = new FormData(form);
  return {
    agents: values.getAll("agent").map(Number),
    envs: data.envs.length > 1 ? values.getAll("env").map(Number) : [0],
    instance: Number(values.get("instance") ?? 0),
    x: values.get("x"),
    y: values.get("y"),
    band: values.has("band"),
    theme: values.get("theme"),
  };
}

function show() {
  const now = chosen();
  document.documentElement.style.colorScheme = now.theme === "system" ? "" : now.theme;
  for (const view of document.querySelectorAll("[data-view]")) {
    const [env, instance] = view.dataset.view.split("-").map(Number);
    view.hidden = !now.envs.includes(env) || (!data.separate && instance !== now.instance);
  }
  for (const row of document.querySelectorAll("tr[data-agent]")) {
    const agents = [row.dataset.agent, row.dataset.other ?? row.dataset.agent];
    row.hidden = !agents.every((agent) => now.agents.includes(Number(agent)));
  }
  const empty = now.envs.length === 0 ? "environment" : now.agents.length === 0 ? "agent" : null;
  document.getElementById("nothing").textContent = empty ? `No ${empty} is chosen.` : "";
  for (const panel of document.querySelectorAll("figure")) {
    panel.hidden = empty !== null || !now.envs.includes(Number(panel.dataset.env));
    if (!panel.hidden && window.Plotly) draw(panel, now);
  }
}

/** One panel: the curves of an environment, from the highest down, as the box under the pointer lists them. */
function draw(panel, now) {
  const env = Number(panel.dataset.env);
  const dark = !printing && (now.theme === "dark" || (now.theme === "system" && darkSystem.matches));
  const view = `${env}-${panel.dataset.instance ?? now.instance}`;
  const curves = data.curves[view];
  const last = (agent) => curves[agent].mean.at(-1);
  const order = now.agents.filter((agent) => curves[agent].mean.length).toSorted((a, b) => last(b) - last(a));
  const seen = []; // what decides the range of the regret: means, for a band may reach down to zero
  const none = [];
  const bands = [], lines = [];
  for (const agent of order) {
    const { mean, half } = curves[agent];
    const { name, light, dark: onDark, dash } = data.agents[agent];
    const color = dark ? onDark : light;
    const kept = [...mean.keys()].filter((i) => now.y === "linear" || mean[i] > data.floor);
    if (kept.length === 0) {
      none.push(name);
      continue;
    }
    const at = (values) => kept.map((i) => values[i]);
    const x = at(data.steps);
    seen.push(...kept.filter((i) => data.steps[i] >= data.start).map((i) => mean[i]));
    if (now.band) {
      const low = kept.map((i) => (now.y === "log" ? Math.max(mean[i] - half[i], data.floor) : mean[i] - half[i]));
      const high = kept.map((i) => mean[i] + half[i]);
      bands.push({
        x: [...x, ...x.toReversed()], y: [...high, ...low.toReversed()], mode: "lines", line: { width: 0 },
        fill: "toself", fillcolor: color + (dark ? "40" : "33"), hoverinfo: "skip",
      });
      if (now.y === "linear") seen.push(...high);
    }
    const words = kept.map((i) => `${plain(name)}: ${number(mean[i], 4)}${half[i] === null ? "" : ` ± ${number(half[i], 2)}`}`);
    lines.push({ x, y: at(mean), mode: x.length > 1 ? "lines" : "markers", line: { color, dash, width: 2.2 }, marker: { color, size: 8 }, cliponaxis: x.length > 1, customdata: words, hovertemplate: "%{customdata}<extra></extra>" });
  }
  const style = getComputedStyle(document.body);
  const ink = printing ? "#000" : style.color;
  const axis = { color: ink, gridcolor: dark ? "#343b43" : "#dfe4e9", zeroline: false, showline: true, linecolor: ink, ticks: "outside", ticklabeloverflow: "allow", exponentformat: "power", showexponent: "all", minexponent: 6, separatethousands: true, automargin: true };
  const horizon = data.steps.at(-1);
  const from = data.steps.length > 1 ? Math.max(data.start, data.steps[0]) : horizon / 10;
  const sessions = range(now.x, now.x === "log" ? from : 0, horizon), regret = around(now.y, seen);
  const missing = none.length ? [`${data.envs[env].amount.startsWith("regret") ? "No regret" : "No reward"}, hence no place on a logarithmic axis: ${none.join(", ")}`] : [];
  panel.querySelector(".missing").textContent = missing.join(". ");
  const layout = {
    xaxis: { ...axis, title: { text: "sessions", standoff: 8 }, unifiedhovertitle: { text: "after %{x:,} sessions" }, ...sessions },
    yaxis: { ...axis, title: { text: `cumulative ${plain(data.envs[env].amount)}`, standoff: 8 }, ...regret },
    hovermode: "x unified",
    hoverlabel: { bgcolor: dark ? "#1d2227" : "#ffffff", bordercolor: axis.gridcolor, font: { color: ink, size: 12 } },
    dragmode: TOUCH ? false : "zoom",
    showlegend: false,
    margin: { l: 8, r: 20, t: 8, b: 8 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: style.fontFamily, size: printing ? 11 : 13, color: ink },
    width: printing ? 340 : undefined,
    height: printing ? 260 : undefined,
  };
  Plotly.react(panel.querySelector(".chart"), [...bands, ...lines], layout, { displayModeBar: false, responsive: true });
}

/** The range of an axis. On a logarithmic one plotly wants exponents, and labels nothing but powers of ten if there are enough. */
function range(type, low, high) {
  if (type === "linear") return { type, range: [low, high] };
  const ends = [Math.log10(low), Math.log10(high)];
  return { type, range: ends, ...(ends[1] - ends[0] >= 2 ? { dtick: 1 } : {}) };
}

function around(type, values) {
  const high = Math.max(...values), low = Math.min(...values);
  if (values.length === 0) return range(type, 1, 10);
  return type === "log" ? range(type, low / 1.5, high * 1.5) : range(type, Math.min(low, 0), high * 1.05 || 1);
}

const number = (value, digits) => value.toLocaleString("en-US", { maximumSignificantDigits: digits });
const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;"); // plotly reads some HTML in its texts

async function copy() {
  const command = document.getElementById("command");
  try {
    await navigator.clipboard.writeText(command.textContent);
    document.getElementById("copied").textContent = "copied";
  } catch {
    getSelection().selectAllChildren(command); // pages of a file may not write to the clipboard in every browser
    document.getElementById("copied").textContent = "selected";
  }
}

/** plotly.js is packed into the page, for it is most of it. */
async function unpack() {
  const packed = Uint8Array.from(atob(document.getElementById("plotly").textContent), (c) => c.charCodeAt(0));
  const script = document.createElement("script");
  script.textContent = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  document.head.append(script);
}

document.addEventListener("change", (event) => event.target.form === form && show());
darkSystem.addEventListener("change", show);
for (const button of document.querySelectorAll("[data-agents]")) {
  button.addEventListener("click", () => {
    for (const box of form.querySelectorAll("[name=agent]")) box.checked = button.dataset.agents === "all";
    show();
  });
}
for (const button of document.querySelectorAll(".save")) {
  const chart = button.closest("figure").querySelector(".chart");
  button.addEventListener("click", () => Plotly.downloadImage(chart, { format: "svg", filename: "regret", width: 800, height: 500 }));
}
document.getElementById("copy").addEventListener("click", copy);
addEventListener("beforeprint", () => { printing = true; show(); });
addEventListener("afterprint", () => { printing = false; show(); });
show();
unpack().then(show);
