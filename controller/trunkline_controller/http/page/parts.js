// What the page is made with: elements, requests to the controller, and words for numbers.

const SVG = "http://www.w3.org/2000/svg";
const PATIENCE_MS = 10_000;

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** An element with attributes (null leaves one out) and children; text stays text. */
export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for a drawing. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/** An element of the page by its id. */
export const $ = (id) => document.getElementById(id);

/** A table with a caption for those who can't see it. Cells are texts or elements. */
export function table(caption, heading, rows) {
  const head = el("tr", {}, ...heading.map((text) => el("th", { scope: "col" }, text)));
  const body = rows.map((cells) => el("tr", {}, ...cells.map((cell) => el("td", {}, cell))));
  return el(
    "div",
    { class: "scroll" },
    el("table", {}, el("caption", { class: "unseen" }, caption), el("thead", {}, head), el("tbody", {}, ...body)),
  );
}

/** A button that calls `act`. */
export function button(text, act, attributes = {}) {
  const made = el("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", act);
  return made;
}

/** Says something to those who listen to the page. */
export function say(text) {
  $("live").textContent = text;
}

/** Asks the controller; fails with what it says, and with the status of its answer (0: none came). */
export async function ask(path) {
  const token = sessionStorage.getItem("token");
  let answer;
  try {
    answer = await fetch(`/v1/${path}`, {
      headers: token === null ? {} : { Authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(PATIENCE_MS),
      cache: "no-store",
    });
  } catch {
    throw Object.assign(new Error("the controller does not answer"), { status: 0 });
  }
  const value = await answer.json().catch(() => ({}));
  if (!answer.ok) throw Object.assign(new Error(value.detail ?? answer.statusText), { status: answer.status });
  return value;
}

function scaled(value, base, units) {
  let unit = 0;
  let rest = value;
  while (rest >= base && unit < units.length - 1) {
    rest /= base;
    unit += 1;
  }
  return `${unit === 0 || rest >= 99.95 ? Math.round(rest) : Number(rest.toFixed(1))} ${units[unit]}`;
}

/** Bits a second as people read them. */
export const rate = (bitS) => scaled(bitS, 1000, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]);

/** From one rate to another: "50 – 300 Mbit/s". */
export function rates(least, most) {
  if (least === most) return rate(most);
  const [low, high] = [rate(least), rate(most)];
  const [number, unit] = low.split(" ");
  return high.endsWith(` ${unit}`) || least === 0 ? `${number} – ${high}` : `${low} – ${high}`;
}

/** Bytes as people read them. */
export const size = (bytes) => scaled(bytes, 1024, ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"]);

/** A number with its thousands apart. */
export const count = (number) => number.toLocaleString();

/** "1 switch", "2 switches". */
export const counted = (number, what, many = `${what}s`) => `${count(number)} ${number === 1 ? what : many}`;

/** A part of one, 0 to 1, in per cent. */
export const percent = (share) => `${Math.round(share * 100)}%`;

const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** A Unix time as people read it. */
export const time = (seconds) => moment.format(new Date(seconds * 1000));

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

/** The time of day now. */
export const now = () => clock.format(new Date());

/** What a load is called and drawn as: 0 idle, 4 nearly full. */
export function heat(load) {
  if (load === null || load.share === null) return "unknown";
  return String([0.01, 0.25, 0.5, 0.8].filter((step) => load.share >= step).length);
}

/** A load in words. */
export function loadText(load) {
  if (load === null) return "not counted yet";
  return load.share === null ? rate(load.bit_s) : `${rate(load.bit_s)}, ${percent(load.share)} of ${rate(load.rate_bit_s)}`;
}

/** A switch's name, or its datapath id where it has none. */
export const switchName = (end) => end.switch_name || end.dpid;

/** What a switch is, by how it is spoken to. */
export const kindOf = (known) => (known.openflow === "none" ? "Linux bridge" : `OpenFlow ${known.openflow}`);

/** A port's name, or its number. */
export const portName = (end) => end.port_name || `port ${end.port}`;

/** What can be told of hosts by their MAC addresses: the first IP address of each. */
export function hostNames(topology) {
  return new Map(topology.hosts.map((host) => [host.mac, host.addresses[0] ?? host.mac]));
}

/** A link's name for people. */
export function linkName(link, names) {
  if (link.b !== null) return `${switchName(link.a)} ⇄ ${switchName(link.b)}`;
  const hosts = link.hosts.length === 1 ? names.get(link.hosts[0]) ?? link.hosts[0] : counted(link.hosts.length, "host");
  return `${switchName(link.a)} ⇄ ${hosts}`;
}
