"use strict";
// A key follows the link, or enters the field, that names it in data-key.
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.target.matches("input, textarea, select")) return;
  const found = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (!found) return;
  event.preventDefault();
  if (found.matches("a")) found.click();
  else found.focus();
});
