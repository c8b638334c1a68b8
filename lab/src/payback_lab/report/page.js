// Draws the charts when they come into view; the legend, the band menu, the bars of verdicts and printing act on them.
"use strict";
(() => {
  const { charts, specs, data } = JSON.parse(document.getElementById("charts").textContent);
  const boxes = [...document.querySelectorAll(".legend input[name=scheme]")];
  const band = document.getElementById("band");
  const legend = document.querySelector(".legend");
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

  function draw(element) {
    const id = element.dataset.chart;
    if (!views.has(id)) views.set(id, embed(element, id));
    return views.get(id);
  }

  async function embed(element, id) {
    const { spec, named } = charts[id];
    const datasets = Object.fromEntries(Object.entries(named).map(([name, source]) => [name, rows(data[source])]));
    const full = { ...specs[spec], datasets };
    // ast: expressions are interpreted, so the page needs no eval. Level 1 is errors only: an axis without data, when all
    // schemes are switched off, is nothing to warn of.
    const options = { renderer: "svg", actions: false, ast: true, logLevel: 1 };
    const { view } = await vegaEmbed(element, full, options);
    await apply(view);
    element.dataset.drawn = "true";
    return view;
  }

  async function apply(view) {
    signal(view, "hidden", hidden());
    signal(view, "band", band.value);
    await view.runAsync();
  }

  function applyAll() {
    const off = new Set(hidden());
    for (const element of document.querySelectorAll("[data-scheme]"))
      element.classList.toggle("off", off.has(element.dataset.scheme));
    for (const view of views.values()) view.then(apply);
  }

  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { watch.unobserve(entry.target); draw(entry.target); }
  }, { rootMargin: "400px" });
  document.querySelectorAll(".chart").forEach((element) => watch.observe(element));

  // A link to what is folded unfolds it; a part of a bar of verdicts shows the claims of that verdict.
  function unfold(id) {
    const target = id && document.getElementById(id);
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    return target;
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (!link) return;
    const target = unfold(link.hash.slice(1));
    const choice = link.dataset.verdict && target.querySelector(`input[value="${link.dataset.verdict}"]`);
    if (choice) choice.checked = true;
  });
  unfold(decodeURIComponent(location.hash.slice(1)));

  boxes.forEach((box) => box.addEventListener("change", applyAll));
  band.addEventListener("change", applyAll);
  const setAll = (on) => { boxes.forEach((box) => { box.checked = on; }); applyAll(); };
  document.getElementById("all").addEventListener("click", () => setAll(true));
  document.getElementById("no-one").addEventListener("click", () => setAll(false));
  if (matchMedia("(max-width: 640px)").matches) legend.open = false;

  // On paper everything is unfolded and drawn; afterwards it is folded again. The button waits for the charts, which the
  // browser's own print command does not.
  let folded = [];
  function open() {
    const closed = [...document.querySelectorAll("details:not([open])")];
    closed.forEach((element) => { element.open = true; });
    folded.push(...closed);
    return Promise.all([...document.querySelectorAll(".chart")].map(draw));
  }
  window.addEventListener("beforeprint", open);
  window.addEventListener("afterprint", () => { folded.forEach((element) => { element.open = false; }); folded = []; });
  document.getElementById("print").addEventListener("click", () => open().then(() => window.print()));
})();
