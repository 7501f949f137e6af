// Replaces each figure's static picture by the live chart as it comes near the screen: hover,
// series picked by click, saving as SVG or PNG. Follows the page's width and colour scheme.
"use strict";
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const ink = "#d0d0cc", faint = "#3b3c3f";
  const night = {
    axis: { labelColor: ink, titleColor: ink, gridColor: faint, domainColor: "#777", tickColor: "#777" },
    legend: { labelColor: ink, titleColor: ink },
    header: { labelColor: ink, titleColor: ink },
    title: { color: ink },
    mark: { color: "#56B4E9" },
    text: { color: ink },
    rule: { color: "#9a9a96" },
    range: { category: ["#56B4E9", "#F08A4B", "#2FC49A", "#E3A6C6", "#F0B93A", "#8FB8FF", "#E0E0DC"] },
  };

  const composed = (spec) => ["facet", "hconcat", "vconcat", "concat", "repeat"].some((k) => k in spec)
    || ["row", "column", "facet"].some((k) => k in (spec.encoding ?? {}));

  function adapted(original, width) {
    const spec = structuredClone(original);
    spec.config = { ...spec.config, background: null };
    if (dark.matches) {
      for (const [part, values] of Object.entries(night)) {
        spec.config[part] = { ...spec.config[part], ...values };
      }
    }
    if (!composed(spec)) {
      spec.width = width;
      spec.autosize = { type: "fit-x", contains: "padding" };
    } else if (width < 560) {
      // Panels stack; what is still too wide (room is left for labels) scrolls in its box.
      if (spec.columns) spec.columns = 1;
      for (const panel of [spec.spec, ...(spec.concat ?? []), ...(spec.vconcat ?? [])]) {
        if (panel?.width > width - 150) panel.width = width - 150;
      }
    }
    return spec;
  }

  async function draw(box) {
    const width = Math.floor(Math.min(box.clientWidth, 700));
    const scheme = dark.matches ? "dark" : "light";
    if (box.dataset.drawn === `${width} ${scheme}`) return;
    box.dataset.drawn = `${width} ${scheme}`;
    const original = JSON.parse(box.parentElement.querySelector("script").textContent);
    const live = document.createElement("div");
    const result = await vegaEmbed(live, adapted(original, width), {
      renderer: "svg",
      actions: { export: true, source: false, compiled: false, editor: false },
      downloadFileName: box.parentElement.id,
    });
    box.view?.finalize();
    box.view = result.view;
    box.removeAttribute("role");
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
  addEventListener("beforeprint", again);
  dark.addEventListener("change", again);
  if (matchMedia("(max-width: 75rem)").matches) {
    document.querySelector("#contents details").open = false;
  }
})();
