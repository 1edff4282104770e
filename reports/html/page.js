"use strict";
// Functions that all parts of the page share. Text from reports becomes text nodes only, never markup.

/** Makes an element with properties and children; strings become text nodes. */
function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function sizeText(bytes) {
  const units = ["", "K", "M", "G", "T", "P"];
  let unit = 0;
  while (bytes >= 1024 && bytes % 1024 === 0 && unit + 1 < units.length) {
    bytes /= 1024;
    unit += 1;
  }
  if (Number.isInteger(bytes) && bytes < 1e6)
    return bytes + units[unit];
  while (bytes >= 1024 && unit + 1 < units.length) {
    bytes /= 1024;
    unit += 1;
  }
  return numberText(bytes) + units[unit];
}

/** A number with four significant digits, or rounded to a whole number from 1000 to 1e15; a whole number in full. */
function numberText(value) {
  if (Number.isInteger(value))
    return String(value);
  const size = Math.abs(value);
  if (size >= 1000 && size < 1e15)
    return value.toFixed(0);
  return String(Number(value.toPrecision(4)));
}

function cellText(value, kind) {
  if (value === null || value === undefined)
    return "";
  if (typeof value !== "number")
    return value;
  if (kind === "size")
    return sizeText(value);
  if (kind === "share")
    return numberText(Number((value * 100).toPrecision(3))) + "%";
  return numberText(value);
}

/** The value of a CSS variable in the current colour scheme. */
function styleValue(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function isDark() {
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Calls `act` once: when the element comes near the window, or before the page is printed. */
function whenSeen(element, act) {
  let done = false;
  const once = () => {
    if (!done) {
      done = true;
      observer.disconnect();
      act();
    }
  };
  const observer = new IntersectionObserver((entries) => entries.some((e) => e.isIntersecting) && once(),
    { rootMargin: "400px" });
  observer.observe(element);
  addEventListener("beforeprint", once, { once: true });
}

/** Buttons of which one is pressed; null if there are fewer than two names. */
function choice(names, choose) {
  if (names.length < 2)
    return null;
  const buttons = names.map((name, i) => make("button", {
    type: "button", textContent: name, onclick: () => {
      buttons.forEach((button, j) => button.setAttribute("aria-pressed", i === j));
      choose(i);
    },
  }));
  buttons.forEach((button, i) => button.setAttribute("aria-pressed", i === 0));
  return make("div", { className: "choice" }, ...buttons);
}

/** A titled block of the page. */
function card(block, ...children) {
  const element = make("figure", { className: "card " + block.type },
    block.title ? make("figcaption", {}, block.title) : null, ...children);
  element.dataset.type = block.type;
  return element;
}

/** Content that is hidden until the reader opens it; `fill` makes it then. */
function folded(summary, fill) {
  const details = make("details", {}, make("summary", {}, summary));
  details.addEventListener("toggle", () => details.open && details.childElementCount === 1 && details.append(fill()));
  return details;
}
