// Replaces each figure's static picture by the live chart as it comes near the screen: hover,
// series picked by click, saving as SVG or PNG. Follows the page's width and colour scheme.
"use strict";
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");

  const composed = (spec) => ["facet", "hconcat", "vconcat", "concat", "repeat"].some((k) => k in spec)
    || ["row", "column", "facet"].some((k) => k in (spec.encoding ?? {}));

  function adapted(box, width) {
    const narrow = width < 560;
    const text = box.parentElement.querySelector("script").textContent;
    // The theme's grey, which marks set themselves, is too dark for the dark scheme.
    const spec = JSON.parse(dark.matches ? text.replaceAll("#6E6E6E", "#A3A39F") : text, (key, value) => (
      narrow && key === "legend" && value?.columns > 2 ? { ...value, columns: 2 } : value
    ));
    spec.config = { ...spec.config, background: null };
    // A title that is longer than a short axis ends with it, so that it is not cut.
    if (narrow) {
      spec.config.axisX = { ...spec.config.axisX, titleAnchor: "end" };
      spec.config.legend = { ...spec.config.legend, layout: { top: { anchor: "end" } } };
    }
    spec.description = box.getAttribute("aria-label");
    if (dark.matches) {
      for (const [part, values] of Object.entries(night)) {
        spec.config[part] = { ...spec.config[part], ...values };
      }
    }
    if (!composed(spec)) {
      spec.width = width;
      spec.autosize = { type: "fit-x", contains: "padding" };
    } else if (narrow) {
      // Panels stack; what is still too wide (room is left for labels) scrolls in its box.
      if (spec.columns) spec.columns = 1;
      for (const panel of [spec.spec, ...(spec.concat ?? []), ...(spec.vconcat ?? [])]) {
        if (panel?.width > width - 150) panel.width = width - 150;
      }
    }
    return spec;
  }

  // Fields without a value are not shown.
  function formatTooltip(value, sanitize) {
    if (typeof value !== "object") return sanitize(value);
    const said = Object.entries(value).filter(([, text]) => !["", "null", "undefined"].includes(String(text)));
    const row = ([key, text]) => `<tr><td class="key">${sanitize(key)}</td><td class="value">${sanitize(text)}</td></tr>`;
    return `<table>${said.map(row).join("")}</table>`;
  }

  async function draw(box) {
    const width = Math.floor(Math.min(box.clientWidth, 700));
    const scheme = dark.matches ? "dark" : "light";
    if (box.dataset.drawn === `${width} ${scheme}`) return;
    box.dataset.drawn = `${width} ${scheme}`;
    const live = document.createElement("div");
    const result = await vegaEmbed(live, adapted(box, width), {
      renderer: "svg",
      tooltip: { formatTooltip },
      actions: { export: true, source: false, compiled: false, editor: false },
      downloadFileName: box.parentElement.id,
    });
    box.view?.finalize();
    box.view = result.view;
    // From here on the chart's own root carries the description.
    box.removeAttribute("role");
    live.querySelector("summary")?.setAttribute("aria-label", "Save this figure");
    box.replaceChildren(live);
  }

  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      entry.target.near = entry.isIntersecting;
      if (entry.isIntersecting) draw(entry.target);
    }
  }, { rootMargin: "800px" });
  const boxes = [...document.querySelectorAll(".chart")];
  const again = () => boxes.forEach((box) => {
    if (box.near) draw(box);
  });
  boxes.forEach((box) => near.observe(box));
  let waiting;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(again, 150);
  });
  // Opens the folded chapter that holds the target of a link.
  function unfold() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const chapter = target && target.closest("details.chapter");
    if (!chapter || chapter.open) return;
    chapter.open = true;
    target.scrollIntoView();
  }
  addEventListener("hashchange", unfold);
  document.addEventListener("click", (event) => {
    // The same link again, after the chapter was folded by hand, changes no hash.
    if (event.target.closest("a[href^='#']")) setTimeout(unfold);
  });
  unfold();
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details.chapter").forEach((chapter) => { chapter.open = true; });
    again();
  });
  dark.addEventListener("change", again);
  if (matchMedia("(max-width: 75rem)").matches) {
    document.querySelector("#contents details").open = false;
  }
})();
