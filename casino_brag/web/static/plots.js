// Plots that can be pointed at, and what is refreshed by itself without losing the reader's place.
// Without this a page shows the same plots as the server drew them.
"use strict";

(() => {
  // What is open, where tables are scrolled to: kept over a refresh, by ids.
  const kept = new Map();

  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    const part = detail.target;
    // Whoever reads with the keyboard inside of it is not interrupted: the next refresh comes soon.
    const busy = part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea, summary, a, button");
    if (busy && detail.shouldSwap) detail.shouldSwap = false;
    kept.clear();
    for (const item of document.querySelectorAll("main details[id]")) kept.set(item.id, item.open);
    for (const item of document.querySelectorAll("main .scroll[id]")) kept.set(item.id, item.scrollLeft);
  });

  document.addEventListener("htmx:afterSwap", () => {
    for (const [id, state] of kept) {
      const item = document.getElementById(id);
      if (!item) continue;
      if (item.tagName === "DETAILS") item.open = state;
      else item.scrollLeft = state;
    }
    curve?.load();
  });

  // The course of a simulation, by uPlot.
  class Curve {
    constructor(place) {
      this.place = place;
      this.chosen = null;
      this.plot = null;
      this.frame = document.createElement("div");
      this.select = document.createElement("select");
      this.select.id = "field-figure";
      this.select.addEventListener("change", () => {
        this.chosen = this.select.value;
        this.draw();
      });
      const label = document.createElement("label");
      label.htmlFor = this.select.id;
      label.textContent = "Figure";
      const field = document.createElement("div");
      field.className = "field field-short";
      field.append(label, this.select);
      place.append(field, this.frame);
      new ResizeObserver(() => {
        const width = this.frame.clientWidth;
        if (this.plot && width && width !== this.plot.width) this.plot.setSize({ width, height: this.height() });
      }).observe(this.frame);
    }

    async load() {
      const answer = await fetch(this.place.dataset.course, { headers: { Accept: "application/json" } });
      if (!answer.ok) return;
      this.data = await answer.json();
      const names = Object.keys(this.data.figures);
      if (!names.length) return;
      this.place.hidden = false;
      for (const figure of document.querySelectorAll("[data-drawn] .picture, [data-drawn] > .empty")) figure.hidden = true;
      if (this.select.options.length !== names.length) {
        this.select.replaceChildren(...names.map((name) => new Option(this.data.figures[name].label, name)));
        this.chosen = names.includes(this.chosen) ? this.chosen : names[0];
        this.select.value = this.chosen;
      }
      this.draw();
    }

    height() {
      return this.frame.clientWidth < 560 ? 300 : 360;
    }

    draw() {
      if (!this.data) return;
      const told = this.data.figures[this.chosen];
      const exact = told.simulated.map(() => told.expected);
      const series = [
        this.data.rounds,
        exact.map((value, at) => value + told.half_width[at]),
        exact.map((value, at) => value - told.half_width[at]),
        exact,
        told.simulated,
      ];
      this.plot?.destroy();
      this.plot = new uPlot(this.options(), series, this.frame);
    }

    options() {
      const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
      const percent = (_, value) => (value == null ? "–" : `${value.toFixed(5)} %`);
      const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
      const edge = { stroke: colour("--strong"), width: 1, points: { show: false }, value: percent };
      return {
        width: this.frame.clientWidth,
        height: this.height(),
        scales: { x: { time: false, distr: 3, range: (_, least, most) => [least, most] } },
        axes: [
          { ...axis, values: (_, splits) => splits.map(short), grid: { ...axis.grid, filter: tenfold }, ticks: { ...axis.ticks, filter: tenfold } },
          { ...axis, size: 78, values: (_, splits) => splits.map((value) => `${+value.toFixed(5)} %`) },
        ],
        series: [
          { label: "Rounds", value: (_, value) => (value == null ? "–" : value.toLocaleString("en")) },
          { ...edge, label: "95 % up to" },
          { ...edge, label: "95 % from" },
          { label: "Exact", stroke: colour("--ink"), width: 1, dash: [6, 4], points: { show: false }, value: percent },
          { label: "Simulated", stroke: colour("--accent"), width: 2, points: { show: true, size: 5 }, value: percent },
        ],
        bands: [{ series: [1, 2], fill: colour("--accent-soft") }],
        legend: { live: true },
      };
    }
  }

  const isTenfold = (rounds) => Number.isInteger(Math.round(Math.log10(rounds) * 1e9) / 1e9);
  const tenfold = (_, splits) => splits.map((rounds) => (isTenfold(rounds) ? rounds : null));

  function short(rounds) {
    if (rounds == null || !isTenfold(rounds)) return "";
    for (const [size, unit] of [[1e9, "bn"], [1e6, "m"], [1e3, "k"]]) {
      if (rounds >= size) return `${rounds / size} ${unit}`;
    }
    return "";
  }

  let curve = null;
  document.addEventListener("DOMContentLoaded", () => {
    const place = document.querySelector("[data-course]");
    if (!place || typeof uPlot === "undefined") return;
    curve = new Curve(place);
    curve.load();
    document.addEventListener("console:theme", () => curve.draw());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => curve.draw());
  });
})();
