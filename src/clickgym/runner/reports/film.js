const { frames, points } = JSON.parse(document.getElementById("data").textContent);
const find = (name) => document.getElementById(name);
const rows = [...document.querySelectorAll(".film li")];
const MOMENT = 280; // milliseconds
let timer = 0;

/** Show one moment of the run. */
function show(place) {
  const frame = frames[place];
  find("moment").value = place;
  find("step").textContent = `session ${frame.step.toLocaleString("en")}`;
  find("total").textContent = frame.total.toLocaleString("en");
  find("regret").textContent = frame.regret.toLocaleString("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
  find("speed").textContent = frame.speed === null ? "–" : frame.speed.toLocaleString("en");
  find("here").setAttribute("cx", points[place][0]);
  find("here").setAttribute("cy", points[place][1]);
  rows.forEach((row, k) => {
    const clicked = Boolean(frame.clicks[k]), examined = Boolean(frame.examined[k]);
    row.classList.toggle("clicked", clicked);
    row.classList.toggle("examined", examined);
    row.querySelector(".item").textContent = `item ${frame.ranking[k]}`;
    row.querySelector("b").textContent = clicked ? "✓ clicked" : examined ? "examined" : "";
    if (frame.attraction !== null) {
      row.querySelector("u").style.width = `${100 * frame.attraction[k]}%`;
      row.querySelector(".bar span").textContent = frame.attraction[k].toFixed(2);
    }
  });
}

function stop() {
  clearInterval(timer);
  timer = 0;
  find("play").textContent = "Play";
  find("play").setAttribute("aria-pressed", "false");
}

find("play").addEventListener("click", () => {
  if (timer) return stop();
  const place = () => Number(find("moment").value);
  if (place() === frames.length - 1) show(0);
  find("play").textContent = "Pause";
  find("play").setAttribute("aria-pressed", "true");
  timer = setInterval(() => (place() < frames.length - 1 ? show(place() + 1) : stop()), MOMENT);
});
find("moment").addEventListener("input", () => {
  stop();
  show(Number(find("moment").value));
});
show(0);
