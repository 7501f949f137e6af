// A search field in the contents, which lists the sections that hold all words and marks the words,
// and a link at each heading, whose address can be copied.
"use strict";
(() => {
  const SHOWN = 30, MARKED = 2000;
  const contents = document.querySelector("#contents details");
  const headings = [...document.querySelectorAll("main :is(h1, h2, h3)[id]")];

  for (const heading of headings) {
    const link = document.createElement("a");
    link.className = "anchor";
    link.href = `#${heading.id}`;
    link.setAttribute("aria-label", `Link to ${heading.textContent.trim()}`);
    // A summary is a control, which must not contain another one.
    const summary = heading.closest("summary");
    if (summary) summary.after(link);
    else heading.append(link);
  }

  let sections;
  function read() {
    // Each text belongs to the heading before it.
    sections = [];
    const parts = "h1[id], h2[id], h3[id], p, li, td, th, figcaption, pre.output";
    for (const part of document.querySelectorAll(`main :is(${parts})`)) {
      const text = part.textContent.toLowerCase();
      if (part.matches(":is(h1, h2, h3)[id]")) sections.push({ heading: part, text });
      else if (sections.length) sections.at(-1).text += ` ${text}`;
    }
  }

  // Highlights the words, in browsers that can do so without changing the page.
  function mark(words) {
    if (!CSS.highlights) return;
    const ranges = [];
    const texts = document.createTreeWalker(document.getElementById("text"), NodeFilter.SHOW_TEXT);
    while (words.length && ranges.length < MARKED && texts.nextNode()) {
      const node = texts.currentNode, text = node.data.toLowerCase();
      if (node.parentElement.closest("script, svg")) continue;
      for (const word of words) {
        for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
          const range = new Range();
          range.setStart(node, at);
          range.setEnd(node, at + word.length);
          ranges.push(range);
        }
      }
    }
    CSS.highlights.set("found", new Highlight(...ranges));
  }

  const field = Object.assign(document.createElement("input"), {
    type: "search", placeholder: "Search in all sections",
  });
  field.setAttribute("aria-label", "Search in all sections");
  const found = Object.assign(document.createElement("ul"), { className: "found", hidden: true });
  found.setAttribute("aria-live", "polite");
  const list = contents.querySelector("ul");
  if (!list) return;
  list.before(field, found);

  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    found.hidden = !words.length;
    list.hidden = !found.hidden;
    mark(words);
    if (found.hidden) return;
    if (!sections) read();
    const hits = sections.filter(({ text }) => words.every((word) => text.includes(word)));
    const items = hits.slice(0, SHOWN).map(({ heading }) => {
      const item = document.createElement("li"), link = document.createElement("a");
      link.href = `#${heading.id}`;
      link.textContent = heading.textContent.trim();
      item.append(link);
      return item;
    });
    const more = document.createElement("li");
    if (!hits.length) more.textContent = "Nothing was found.";
    if (hits.length > SHOWN) more.textContent = `and ${hits.length - SHOWN} more sections`;
    found.replaceChildren(...items, ...(more.textContent ? [more] : []));
  });
})();
