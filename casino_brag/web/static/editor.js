// The paytable editor: problems at their fields, a word before changes are lost, hands told under the pointer.
// The editor itself is a form and works without this.
"use strict";

(() => {
  const CELL = 14;

  function placeProblems() {
    const form = document.getElementById("editor");
    if (!form) return;
    const told = new Map();
    for (const item of document.querySelectorAll("#preview [data-problem]")) {
      const text = item.querySelector("span").textContent;
      const before = told.get(item.dataset.problem);
      told.set(item.dataset.problem, before ? `${before} ${text}` : text);
    }
    for (const slot of form.querySelectorAll(".error")) {
      const name = slot.id.slice("error-".length);
      if (name === "new_currency" || told.has(name)) continue;
      slot.hidden = true;
      slot.textContent = "";
      mark(document.getElementById(`field-${name}`), slot.id, false);
    }
    for (const [name, text] of told) {
      const field = document.getElementById(`field-${name}`);
      let slot = document.getElementById(`error-${name}`);
      if (!slot && field && field.closest(".field")) {
        slot = document.createElement("p");
        slot.className = "error";
        slot.id = `error-${name}`;
        field.closest(".field").append(slot);
      }
      if (!slot) continue;
      slot.textContent = slot.dataset.label ? `${slot.dataset.label}: ${text}` : text;
      slot.hidden = false;
      slot.closest("details")?.setAttribute("open", "");
      mark(field, slot.id, true);
    }
  }

  function mark(field, slot, wrong) {
    if (!field || !field.matches("input, select, textarea")) return;
    const by = new Set((field.getAttribute("aria-describedby") || "").split(" ").filter(Boolean));
    if (wrong) {
      field.setAttribute("aria-invalid", "true");
      by.add(slot);
    } else {
      field.removeAttribute("aria-invalid");
      by.delete(slot);
    }
    if (by.size) field.setAttribute("aria-describedby", [...by].join(" "));
    else field.removeAttribute("aria-describedby");
  }

  // What is unsaved is asked about before it is left.
  let unsaved = false;
  const form = document.getElementById("editor");
  if (form) {
    const note = form.querySelector("[data-unsaved]");
    unsaved = !note.hidden;
    form.addEventListener("input", () => {
      unsaved = true;
      note.hidden = false;
    });
    form.addEventListener("submit", () => {
      unsaved = false;
    });
    window.addEventListener("beforeunload", (event) => {
      if (unsaved) event.preventDefault();
    });
    placeProblems();
    // A button that moves a line keeps the keyboard where it was.
    const pressed = sessionStorage.getItem("casino-brag-pressed");
    sessionStorage.removeItem("casino-brag-pressed");
    if (pressed) {
      const [id, top] = JSON.parse(pressed);
      const button = document.getElementById(id) || document.getElementById(id.replace(/^up-/, "down-"));
      if (button) {
        button.focus({ preventScroll: true });
        window.scrollTo(0, top);
      }
    }
    form.addEventListener("click", (event) => {
      const button = event.target.closest("button[id]");
      if (button) sessionStorage.setItem("casino-brag-pressed", JSON.stringify([button.id, window.scrollY]));
    });
  }

  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id === "preview") placeProblems();
  });

  // The hand under the pointer, in words.
  document.addEventListener("pointermove", (event) => {
    const map = event.target.closest && event.target.closest("[data-map]");
    if (!map) return;
    const readout = map.closest("figure").querySelector("[data-readout]");
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(map.getScreenCTM().inverse());
    const text = hand(map, point);
    readout.hidden = text === "";
    if (text) readout.textContent = text;
  });

  function hand(map, point) {
    for (const block of map.querySelectorAll("[data-block]")) {
      const column = Math.floor((point.x - Number(block.dataset.left)) / CELL);
      const line = Math.floor((point.y - Number(block.dataset.top)) / CELL);
      const size = Number(block.dataset.size);
      if (column < 0 || line < 0 || column >= size || line >= size) continue;
      const value = block.dataset.values.split(",")[line * size + column];
      if (value === "") return "";
      const ranks = block.dataset.ranks;
      const suited = line > column;
      const cards = [block.dataset.block, ranks[Math.min(line, column)], ranks[Math.max(line, column)]];
      const worth = Math.abs(Number(value) / 1000).toFixed(3);
      const name = cards.join("-") + (suited ? " suited" : "");
      return Number(value) > 0
        ? `${name}: playing is worth ${worth} Antes more than folding`
        : `${name}: folding is worth ${worth} Antes more than playing`;
    }
    return "";
  }
})();
