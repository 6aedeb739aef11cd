// Tables that are sorted by a click on a head: numbers by `data-sort`, the rest by its text.
(() => {
  "use strict";
  for (const table of document.querySelectorAll("table.sortable")) {
    const [head, ...rows] = table.rows;
    [...head.cells].forEach((cell, column) => {
      const button = document.createElement("button");
      button.type = "button"; button.textContent = cell.textContent;
      cell.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = cell.getAttribute("aria-sort") === "ascending";
        for (const other of head.cells) other.removeAttribute("aria-sort");
        cell.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = (row) => row.cells[column].dataset.sort ?? row.cells[column].textContent.trim();
        const order = (a, b) => {
          const [x, y] = [key(a), key(b)], [u, v] = [parseFloat(x), parseFloat(y)];
          if (x === "" || x === "–") return 1; // what has no figure stays below
          if (y === "" || y === "–") return -1;
          const by = Number.isNaN(u) || Number.isNaN(v) ? x.localeCompare(y) : u - v;
          return down ? -by : by;
        };
        rows.sort(order).forEach((row) => row.parentNode.append(row));
      });
    });
  }
})();
