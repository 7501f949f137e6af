// Shows the view that the address names.
"use strict";
(() => {
  const VIEWS = {
    servers: (main, name) => (name ? serverView(main, name) : serversView(main)),
    variants: variantsView,
    compare: compareView,
    claims: (main, name) => (name ? claimView(main, name) : claimsView(main)),
    about: aboutView,
  };
  for (const link of document.querySelectorAll('.views a[href^="#/"]')) {
    if (!(link.getAttribute("href").slice(2) in VIEWS)) link.remove();
  }
  const main = document.getElementById("text");
  const dataset = document.title;

  function show(moved) {
    const { view, name } = address.read();
    const known = view in VIEWS ? view : "servers";
    document.querySelectorAll(".chart").forEach((box) => {
      near.unobserve(box);
      box.view?.finalize();
    });
    main.replaceChildren();
    VIEWS[known](main, name);
    for (const link of document.querySelectorAll(".views a")) {
      if (link.getAttribute("href") === `#/${known}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    const heading = main.querySelector("h1");
    document.title = `${heading.textContent} – ${dataset}`;
    if (!moved) return;
    scrollTo(0, 0);
    // A screen reader then announces the view that the link opened.
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  }
  addEventListener("hashchange", (event) => {
    // The target of the skip link is no view.
    if (new URL(event.newURL).hash === "#text") return;
    show(true);
  });
  show(false);
})();
