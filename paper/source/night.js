// The dark scheme of charts, as parts of Vega-Lite's configuration.
"use strict";
const night = (() => {
  const ink = "#d0d0cc", faint = "#3b3c3f";
  return {
    axis: { labelColor: ink, titleColor: ink, gridColor: faint, domainColor: "#777", tickColor: "#777" },
    legend: { labelColor: ink, titleColor: ink },
    header: { labelColor: ink, titleColor: ink },
    title: { color: ink },
    mark: { color: "#56B4E9" },
    text: { color: ink },
    rule: { color: "#9a9a96" },
    range: { category: ["#56B4E9", "#F08A4B", "#2FC49A", "#E3A6C6", "#F0B93A", "#8FB8FF", "#E0E0DC"] },
  };
})();
