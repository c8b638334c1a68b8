// Draws the charts when they come into view, and lets the legend and the band menu act on all of them.
"use strict";
(() => {
  const { charts, specs, data } = JSON.parse(document.getElementById("charts").textContent);
  const boxes = [...document.querySelectorAll(".legend input[name=scheme]")];
  const band = document.getElementById("band");
  const views = new Map();

  const hidden = () => boxes.filter((box) => !box.checked).map((box) => box.value);

  // Curves come as columns, which are a third of the size of rows.
  function rows(columns) {
    if (Array.isArray(columns)) return columns;
    return Object.entries(columns.series).flatMap(([scheme, parts]) =>
      columns.x.map((x, i) => {
        const row = { scheme, x };
        for (const [name, part] of Object.entries(parts)) row[name] = part[i];
        return row;
      }));
  }

  function signal(view, name, value) {
    try { view.signal(name, value); } catch { return; }  // a chart without this switch
  }

  async function draw(element) {
    const id = element.dataset.chart;
    if (views.has(id)) return;
    views.set(id, null);
    const { spec, named } = charts[id];
    const datasets = Object.fromEntries(Object.entries(named).map(([name, source]) => [name, rows(data[source])]));
    const full = { ...specs[spec], datasets };
    // ast: expressions are interpreted, so the page needs no eval. Level 1 is errors only: an axis without data, when all
    // schemes are switched off, is nothing to warn of.
    const options = { renderer: "svg", actions: false, ast: true, logLevel: 1 };
    const { view } = await vegaEmbed(element, full, options);
    views.set(id, view);
    await apply(view);
    element.dataset.drawn = "true";
  }

  async function apply(view) {
    signal(view, "hidden", hidden());
    signal(view, "band", band.value);
    await view.runAsync();
  }

  function applyAll() {
    const off = new Set(hidden());
    for (const figure of document.querySelectorAll("figure[data-scheme]"))
      figure.classList.toggle("off", off.has(figure.dataset.scheme));
    for (const view of views.values()) if (view) apply(view);
  }

  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { watch.unobserve(entry.target); draw(entry.target); }
  }, { rootMargin: "600px" });
  document.querySelectorAll(".chart").forEach((element) => watch.observe(element));

  boxes.forEach((box) => box.addEventListener("change", applyAll));
  band.addEventListener("change", applyAll);
  const setAll = (on) => { boxes.forEach((box) => { box.checked = on; }); applyAll(); };
  document.getElementById("all").addEventListener("click", () => setAll(true));
  document.getElementById("no-one").addEventListener("click", () => setAll(false));
  window.addEventListener("beforeprint", () => document.querySelectorAll(".chart").forEach(draw));
})();
