"use strict";
// Shows a running job as it goes on: the page is asked for again, unless a person is at work in it.
(() => {
  const PERIOD_MS = 3000;
  const main = document.querySelector("main");
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button";
  let isOn = true;
  const told = () => { button.textContent = isOn ? "pause updates" : "go on with updates"; };
  button.addEventListener("click", () => { isOn = !isOn; told(); });
  told();
  document.querySelector("header").append(button);
  const isAtWork = () => document.hidden || main.contains(document.activeElement)
    || main.querySelector("details[open]") || !getSelection().isCollapsed;
  setInterval(async () => {
    if (!isOn || isAtWork()) return;
    try {
      const answer = await fetch(location.href);
      const found = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (!answer.ok || isAtWork()) return;
      document.title = found.title;
      main.replaceChildren(...found.querySelector("main").children);
    } catch {
      document.title = "no answer: " + document.title.replace(/^no answer: /, "");
    }
  }, PERIOD_MS);
})();
