// Reads and writes the view and its settings in the address, #/variants?experiment=backlog&sort=-errors, so
// that a link opens the same view.
"use strict";
const address = {
  read() {
    const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
    const [view, ...rest] = path.split("/").map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
    return { view, name: rest.join("/"), params: new URLSearchParams(query) };
  },

  of(view, name = "", params = {}) {
    const known = Object.entries(params).filter(([, value]) => value !== "" && value !== null && value !== undefined);
    const query = new URLSearchParams(known).toString().replaceAll("%2C", ",").replaceAll("+", "%20");
    return `#/${view}${name ? `/${encodeURIComponent(name)}` : ""}${query ? `?${query}` : ""}`;
  },

  // Changes the address without leaving the view, so that Back leads to the view before.
  keep(view, name, params) {
    history.replaceState(null, "", address.of(view, name, params));
  },
};
