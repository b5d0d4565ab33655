// Numbers, amounts and times as people read them.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const UNKNOWN = "–";

function isKnown(value) {
  return typeof value === "number" && Number.isFinite(value);
}

/** Three digits at most of what is below a thousand. */
function short(value) {
  if (value >= 100) return WHOLE.format(value);
  return value.toFixed(value >= 10 || Number.isInteger(value) ? 0 : 1);
}

export function count(value) {
  return isKnown(value) ? WHOLE.format(value) : UNKNOWN;
}

/** Of one noun or more: `1 node`, `2 nodes`. */
export function counted(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

export function rate(value) {
  return isKnown(value) ? short(value) : UNKNOWN;
}

export function percent(permille) {
  return isKnown(permille) ? `${Math.round(permille / 10)}%` : UNKNOWN;
}

/** Thousandths of a core as cores. */
export function cores(milli) {
  if (!isKnown(milli)) return UNKNOWN;
  const whole = milli / 1000;
  return whole >= 10_000 ? `${short(whole / 1000)}k` : short(whole);
}

export function bytes(value) {
  if (!isKnown(value)) return UNKNOWN;
  let unit = 0;
  for (; value >= 1024 && unit < BINARY.length - 1; unit++) value /= 1024;
  return `${short(value)} ${BINARY[unit]}`;
}

/** *used* of *whole*, both in bytes and in the unit of *whole*. */
export function bytesOf(used, whole) {
  if (!isKnown(used) || !isKnown(whole)) return UNKNOWN;
  const unit = Math.min(Math.floor(Math.log2(Math.max(whole, 1)) / 10), BINARY.length - 1);
  return `${short(used / 1024 ** unit)} / ${short(whole / 1024 ** unit)} ${BINARY[unit]}`;
}

export function duration(seconds) {
  if (!isKnown(seconds)) return UNKNOWN;
  if (seconds === 0) return "0 s";
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${short(seconds * 1000)} ms`;
  if (seconds < 120) return `${short(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h`;
  return `${WHOLE.format(Math.floor(seconds / 86_400))} d`;
}

/** The time since *then*, whole seconds at least. */
export function age(then, now) {
  return isKnown(then) ? duration(Math.max(0, Math.floor(now - then))) : UNKNOWN;
}

/** The time of the day; with the day, if that is not the day of *now*. */
export function clock(seconds, now) {
  if (!isKnown(seconds)) return UNKNOWN;
  const then = new Date(seconds * 1000);
  const time = then.toLocaleTimeString("en-GB");
  const day = then.toLocaleDateString("en-CA");
  return day === new Date(now * 1000).toLocaleDateString("en-CA") ? time : `${day} ${time}`;
}
