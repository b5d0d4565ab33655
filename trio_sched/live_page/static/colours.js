// Light or dark: as the system has it, until the reader chooses; the choice is kept in the browser. And the scale of shares.
// Its steps are even in lightness as eyes see it (OKLab), so it can be read without seeing hues, in print, and on both
// grounds: the fuller a node, the farther it is from the ground.

import { byId } from "./elements.js";

/** Steps of the scale up to 100%; one more stands for what is beyond. */
export const STEPS = 20;

const LIGHT = { lightness: [0.95, 0.36], chroma: [0.025, 0.15], hue: [225, 285] };
const DARK = { lightness: [0.27, 0.9], chroma: [0.04, 0.12], hue: [285, 190] };

/** For each step: its `fill`, and the `ink` that can be read on it. */
export function scale(isDark) {
  const { lightness, chroma, hue } = isDark ? DARK : LIGHT;
  const at = ([begin, end], share) => begin + (end - begin) * share;
  const steps = [];
  for (let step = 0; step < STEPS; step++) {
    const share = step / (STEPS - 1);
    const light = at(lightness, share);
    const strength = at(chroma, Math.sin((share * Math.PI) / 2));
    steps.push({ fill: rgb(light, strength, at(hue, share)), ink: light > 0.62 ? "#10151b" : "#ffffff" });
  }
  steps.push({ fill: isDark ? "#ff9d5c" : "#c2410c", ink: isDark ? "#10151b" : "#ffffff" });
  return steps;
}

/** The step for a share in thousandths; -1 for a node that has nothing of it. */
export function stepOf(permille) {
  if (Number.isNaN(permille)) return -1;
  return permille > 1000 ? STEPS : Math.min(Math.floor((permille * STEPS) / 1000), STEPS - 1);
}

/** OKLCH to sRGB; what a screen cannot show is cut off. */
function rgb(lightness, chroma, hue) {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return `rgb(${linear.map(encoded).join(" ")})`;
}

function encoded(value) {
  const clipped = Math.min(Math.max(value, 0), 1);
  return Math.round(255 * (clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055));
}

const KEY = "trio-sched-theme";
const NAMES = { "": "as the system", light: "light", dark: "dark" };
const SIGNS = { "": "◐", light: "○", dark: "●" };
const SYSTEM = matchMedia("(prefers-color-scheme: dark)");

/** Sends `change` when colours change. */
export class Theme extends EventTarget {
  constructor() {
    super();
    this.choice = kept();
    this.button = byId("theme");
    this.button.addEventListener("click", () => this.next());
    SYSTEM.addEventListener("change", () => this.#show());
    this.#show();
  }

  get isDark() {
    return this.choice ? this.choice === "dark" : SYSTEM.matches;
  }

  /** As the system, then light, then dark. */
  next() {
    const names = Object.keys(NAMES);
    this.choice = names[(names.indexOf(this.choice) + 1) % names.length];
    try {
      localStorage.setItem(KEY, this.choice);
    } catch {
      // A browser may forbid it: the choice then holds for this page.
    }
    this.#show();
  }

  /** A colour of the style sheet, `--ink` for instance, as a canvas takes it. */
  colour(name) {
    this.button.style.outlineColor = `var(${name})`;
    const colour = getComputedStyle(this.button).outlineColor;
    this.button.style.outlineColor = "";
    return colour;
  }

  #show() {
    document.documentElement.dataset.theme = this.choice;
    this.button.textContent = SIGNS[this.choice];
    this.button.title = `Colours: ${NAMES[this.choice]} (t)`;
    this.button.setAttribute("aria-label", this.button.title);
    this.dispatchEvent(new Event("change"));
  }
}

function kept() {
  try {
    const choice = localStorage.getItem(KEY) ?? "";
    return choice in NAMES ? choice : "";
  } catch {
    return "";
  }
}
