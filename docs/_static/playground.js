// Reads the controls, computes with loans.js, writes the numbers and draws them with Vega.
"use strict";
(() => {
  const control = (name) => document.getElementById(`pg-${name}`);
  const names = ["gamma", "lambda", "delay", "rate", "length"];
  const views = new Map();
  const grey = "#808080";
  const config = {
    background: null,
    view: { stroke: null },
    axis: { labelColor: grey, titleColor: grey, gridColor: grey, gridOpacity: 0.2, domainColor: grey, tickColor: grey },
    legend: { labelColor: grey, titleColor: grey, orient: "top", title: null },
    title: { color: grey },
  };
  const base = { $schema: "https://vega.github.io/schema/vega-lite/v6.json", width: "container", config };

  const bars = {
    ...base, height: 200, data: { name: "rows", values: [] },
    mark: { type: "bar", tooltip: true },
    encoding: {
      x: { field: "step", type: "ordinal", title: "step", axis: { labelOverlap: true, labelAngle: 0 } },
      xOffset: { field: "what", type: "nominal", sort: ["F, the bonus", "F′, the shaped reward"] },
      y: { field: "value", type: "quantitative", title: "reward" },
      color: {
        field: "what", type: "nominal", scale: { domain: ["F, the bonus", "F′, the shaped reward"], range: ["#bab0ab", "#4c78a8"] },
      },
      tooltip: [
        { field: "step", type: "ordinal" }, { field: "what", type: "nominal" },
        { field: "value", type: "quantitative", format: ".4g" },
      ],
    },
  };
  const line = (x, y, title, color, scale = {}) => ({
    ...base, height: 140, data: { name: "rows", values: [] },
    mark: { type: "line", color, point: { color, size: 18 }, tooltip: true },
    encoding: {
      x: { field: x, type: "quantitative", title: x === "age" ? "steps since the bonus" : x },
      y: { field: y, type: "quantitative", title, scale },
    },
  });
  const terms = ["signal", "noise", "signal − noise"];
  const advantages = {
    ...base, height: 180, data: { name: "rows", values: [] },
    mark: { type: "line", tooltip: true },
    encoding: {
      x: { field: "step", type: "quantitative", title: "step" },
      y: { field: "value", type: "quantitative", title: "in the advantage" },
      color: { field: "what", type: "nominal", scale: { domain: terms, range: ["#54a24b", "#f58518", "#4c78a8"] } },
      strokeDash: { field: "what", type: "nominal", scale: { domain: terms, range: [[1, 0], [5, 3], [1, 0]] } },
    },
  };
  const charts = {
    rewards: bars,
    advantages,
    debt: line("step", "debt", "debt after the step", "#e45756"),
    "felt-chart": line("age", "felt", "effective share", "#54a24b", { domain: [0, 1] }),
    "interest-chart": line("age", "interest", "interest", "#f58518", { zero: false }),
  };

  function settings() {
    const values = Object.fromEntries(names.map((name) => [name, Number(control(name).value)]));
    const matching = control("matching").value;
    return { ...values, matching, bonus: control("bonus").value, parameter: matching === "geometric" ? values.rate : values.delay };
  }

  function compute({ gamma, lambda, length, matching, parameter, bonus }) {
    const m = loans.shares(matching, parameter, length);
    const rows = loans.episode(loans.bonuses(bonus, length), m, gamma);
    return {
      rows,
      gae: loans.decomposition(rows.map((row) => row.F), m, gamma, lambda),
      ages: loans.byAge(m, gamma, lambda),
      felt: loans.feltShare(matching, parameter, lambda),
      feltWithin: loans.feltShareWithin(length, m, lambda),
      interest: loans.interest(matching, parameter, gamma),
      sum: rows.reduce((sum, row) => sum + gamma ** row.step * row.shaped, 0),
      size: rows.reduce((sum, row) => sum + gamma ** row.step * Math.abs(row.shaped), 0),
      largest: Math.min(...rows.map((row) => row.shaped)),
    };
  }

  const three = (x) => (Number.isFinite(x) ? Number(x.toPrecision(3)).toString().replace("-", "−") : "unbounded");

  function write(found) {
    const texts = {
      felt: `${(100 * found.felt).toFixed(0)} %`,
      "felt-within": `${(100 * found.feltWithin).toFixed(0)} %`,
      reach: three(1 / (1 - settings().gamma * settings().lambda)).replace("Infinity", "unbounded"),
      interest: three(found.interest),
      largest: three(Math.min(0, found.largest)),
      sum: Math.abs(found.sum) <= 1e-9 * (found.size || 1) ? "0" : three(found.sum),
    };
    for (const [name, text] of Object.entries(texts)) control(name).textContent = text;
    for (const name of names) control(`${name}-now`).textContent = control(name).value;
    const matching = control("matching").value;
    control("delay-row").hidden = !["after", "evenly"].includes(matching);
    control("rate-row").hidden = matching !== "geometric";
    control("delay-name").textContent = matching === "evenly" ? "window" : "delay";
  }

  const values = (found) => ({
    rewards: found.rows.flatMap(({ step, F, shaped }) => [
      { step, what: "F, the bonus", value: F }, { step, what: "F′, the shaped reward", value: shaped },
    ]),
    debt: found.rows,
    advantages: found.gae.flatMap(({ step, signal, noise, advantage }) =>
      [signal, noise, advantage].map((value, k) => ({ step, what: terms[k], value }))),
    "felt-chart": found.ages,
    "interest-chart": found.ages,
  });

  async function update() {
    const found = compute(settings());
    window.playground = { settings: settings(), found };
    write(found);
    const data = values(found);
    for (const [name, view] of views) await view.data("rows", data[name]).runAsync();
    document.getElementById("playground").dataset.drawn = "true";
  }

  async function start() {
    // ast: expressions are interpreted, so that no eval is needed.
    const options = { renderer: "svg", actions: false, ast: true, logLevel: 1 };
    for (const [name, spec] of Object.entries(charts))
      views.set(name, (await vegaEmbed(control(name), spec, options)).view);
    document.getElementById("playground").addEventListener("input", update);
    await update();
  }
  start();
})();
