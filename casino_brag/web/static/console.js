// The console's own behaviour: the theme, and what keyboards expect of menus.  Pages work without it.
"use strict";

(() => {
  const THEMES = ["system", "light", "dark"];
  const root = document.documentElement;
  const stored = () => {
    try {
      return localStorage.getItem("casino-brag-theme");
    } catch {
      return null; // storage may be forbidden
    }
  };
  const show = (theme) => {
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
  };
  let theme = THEMES.includes(stored()) ? stored() : "system";
  show(theme); // before the page is drawn

  document.addEventListener("DOMContentLoaded", () => {
    for (const button of document.querySelectorAll("[data-theme-switch]")) {
      button.hidden = false;
      const name = button.querySelector("[data-theme-name]");
      name.textContent = theme;
      button.addEventListener("click", () => {
        theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
        show(theme);
        name.textContent = theme;
        try {
          localStorage.setItem("casino-brag-theme", theme);
        } catch {
          // then it holds for this page
        }
        document.dispatchEvent(new CustomEvent("console:theme"));
      });
    }
    // What was refused is read out first, and is where the keyboard goes on from.
    document.querySelector("main .notice-problem[tabindex]")?.focus();
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const open = event.target.closest("details.narrow[open], details.confirm[open]");
    if (!open) return;
    open.open = false;
    open.querySelector("summary").focus();
  });
})();
