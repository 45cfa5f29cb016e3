"use strict";
// Steps through counterexamples: what is drawn stays, what comes later fades.
(() => {
  const shown = (value) =>
    typeof value === "string" ? value
      : Array.isArray(value) ? "[" + value.map(shown).join(", ") + "]"
        : value === true ? "True" : value === false ? "False" : value === null ? "None" : String(value);

  const made = (name, className, ...children) => {
    const element = document.createElement(name);
    if (className) element.className = className;
    element.append(...children);
    return element;
  };

  const differing = (parts) => parts.flatMap(([where, was, is], position) => [
    ...(position ? [", "] : []), ...(where ? [made("b", "", where), " "] : []),
    made("s", "", shown(was)), " → ", made("var", "", shown(is))]);

  class Counterexample {
    constructor(element) {
      this.element = element;
      this.data = JSON.parse(element.querySelector("script[type='application/json']").textContent);
      this.last = this.data.steps.length - 1;
      this.panel = element.querySelector(".machines");
      this.diagram = element.querySelector(".diagram");
      this.slider = element.querySelector("input[type=range]");
      for (const button of element.querySelectorAll("[data-go]"))
        button.addEventListener("click", () => this.go(button.dataset.go));
      for (const row of element.querySelectorAll(".row, .band"))
        row.addEventListener("click", () => this.show(Number(row.dataset.step)));
      this.slider.addEventListener("input", () => this.show(Number(this.slider.value)));
      element.addEventListener("pointerenter", () => { current = this; });
      element.addEventListener("focusin", () => { current = this; });
    }

    go(where) {
      const to = { first: 0, previous: this.step - 1, next: this.step + 1, last: this.last }[where];
      this.show(Math.min(Math.max(to, 0), this.last));
    }

    show(step) {
      this.step = step;
      this.slider.value = String(step);
      this.element.querySelector("output").textContent = `${step} / ${this.last}`;
      for (const button of this.element.querySelectorAll("[data-go]"))
        button.disabled = ["first", "previous"].includes(button.dataset.go) ? step === 0 : step === this.last;
      for (const part of this.element.querySelectorAll(".diagram [data-step]")) {
        part.classList.toggle("later", Number(part.dataset.step) > step);
        part.classList.toggle("now", Number(part.dataset.step) === step);
      }
      for (const part of this.element.querySelectorAll(".message")) {
        const from = Number(part.dataset.from), to = Number(part.dataset.to);
        part.classList.toggle("later", from > step);
        part.classList.toggle("underway", from <= step && step < to);
      }
      this.element.querySelector(".end").classList.toggle("later", step < this.last);
      this.panel.replaceChildren(...this.told());
      this.follow();
    }

    // The page itself stays where it is.
    follow() {
      const row = this.element.querySelector("li.row.now");
      if (!row) { this.diagram.scrollTop = 0; return; }
      const box = this.diagram.getBoundingClientRect(), place = row.getBoundingClientRect();
      if (place.top < box.top + 60) this.diagram.scrollTop -= box.top + 60 - place.top;
      if (place.bottom > box.bottom - 60) this.diagram.scrollTop += place.bottom - box.bottom + 60;
      const dot = this.element.querySelector(".dot.now").getBoundingClientRect();
      const left = place.right + 20, right = box.right - 40;
      if (dot.left < left) this.diagram.scrollLeft -= left - dot.left;
      else if (dot.right > right) this.diagram.scrollLeft += Math.min(dot.right - right, dot.left - left);
    }

    told() {
      const step = this.data.steps[this.step];
      const head = this.step === 0 ? "the initial state" : `${this.step}. ${step.label}`;
      const parts = [made("p", "step", made("b", "", head), made("span", "", step.because))];
      const flying = this.data.messages.filter(
        (message) => message.from <= this.step && (message.to === null || message.to > this.step));
      if (step.effects.length)
        parts.push(made("div", "effects", "effects", ...step.effects.map((each) => made("i", "", each))));
      if (flying.length)
        parts.push(made("div", "flight", "in flight", ...flying.map(
          (message) => made("i", "", `${message.channel} ${shown(message.value)}`))));
      for (const [name, fields] of Object.entries(step.state)) parts.push(this.machine(step, name, fields));
      return parts;
    }

    machine(step, name, fields) {
      const { state, ...others } = fields;
      const changed = (field) => step.changed[`${name}.${field}`];
      const now = state === undefined ? "" : changed("state")
        ? made("em", "changed", ...differing(changed("state"))) : made("em", "", shown(state));
      const list = Object.entries(others).map(([field, value]) => changed(field)
        ? made("span", "changed", field + " ", ...differing(changed(field)))
        : made("span", "", field + " ", made("var", "", shown(value))));
      const acting = name === step.instance ? " acting" : "";
      return made("div", `machine h${this.data.hues[name]}${acting}`,
        made("h3", "", made("span", "", name), now), made("div", "fields", ...list));
    }
  }

  const all = [...document.querySelectorAll(".counterexample")].map((each) => new Counterexample(each));
  let current = all[0];
  const [, number, step] = /^#step-(\d+)-(\d+)$/.exec(location.hash) ?? [];
  for (const each of all) {
    const isNamed = each.element.dataset.number === number;
    if (isNamed) current = each;
    each.show(isNamed ? Math.min(Number(step), each.last) : each.last);
  }
  const KEYS = { ArrowLeft: "previous", ArrowRight: "next", Home: "first", End: "last" };
  document.addEventListener("keydown", (event) => {
    if (!current || !(event.key in KEYS) || event.target instanceof HTMLInputElement) return;
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    current.go(KEYS[event.key]);
  });
  // On paper no one steps through: each step is written down there.
  addEventListener("beforeprint", () => {
    for (const each of document.querySelectorAll("details.differences")) each.open = true;
  });
})();
