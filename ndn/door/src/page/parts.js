// What the page is made with: elements, requests to the server, and words for numbers.

/** An element with attributes (null leaves one out) and children; text stays text. */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Asks the server; fails with what it says, and the status of its answer. */
export async function ask(question, parameters, signal) {
  const query = new URLSearchParams(parameters);
  const answer = await fetch(`/api/${question}?${query}`, { signal });
  const value = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(value.error), { status: answer.status });
  return value;
}

/** Bytes as people read them. */
export function size(bytes) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

/** A time in milliseconds as people read it; a bare number where it is none. */
export function time(ms) {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? String(ms) : moment.format(date);
}

/** A version as people read it: most are times in microseconds. */
export function version(text) {
  const us = Number(text);
  return us > 1e15 && us < 4e15 ? time(us / 1000) : `version ${text}`;
}

/** A component of an NDN URI as text, where it is text. */
export function label(component) {
  if (/^\.{3,}$/.test(component)) return component.slice(3) || component;
  try {
    return decodeURIComponent(component);
  } catch {
    return component;
  }
}

/** Bytes as rows of hexadecimal digits and letters. */
export function dump(bytes) {
  const rows = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const row = [...bytes.subarray(at, at + 16)];
    const hex = row.map((b) => b.toString(16).padStart(2, "0")).join(" ");
    const text = row.map((b) => (b > 31 && b < 127 ? String.fromCharCode(b) : ".")).join("");
    rows.push(`${at.toString(16).padStart(8, "0")}  ${hex.padEnd(47)}  ${text}`);
  }
  return rows.join("\n");
}

/** What the address says: a folder ends with a slash, a file may have a version after it, `?q=` searches. */
export function place(hash) {
  const [path, query] = hash.replace(/^#/, "").split("?");
  const parts = path.split("/").filter((part) => part !== "");
  const text = new URLSearchParams(query ?? "").get("q");
  if (path === "" || path.endsWith("/")) return { folder: parts, file: null, version: null, text };
  const last = parts.at(-1) ?? "";
  const version = /^v=\d+$/.test(last) ? last.slice(2) : null;
  if (version !== null) parts.pop();
  return { folder: parts.slice(0, -1), file: uri(parts), version, text: null };
}

/** The NDN URI of components. */
export function uri(parts) {
  return `/${parts.join("/")}`;
}
