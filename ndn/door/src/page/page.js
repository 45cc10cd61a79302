// The page: what the address says is shown, and whatever is chosen changes the address.
import { ask, dump, el, label, place, size, time, uri, version } from "/parts.js";

const PREVIEW_BYTES = 65536; // of a text
const DUMP_BYTES = 1024; // of anything else
const SHOWN_BYTES = 64 * 1024 * 1024; // a picture or document beyond this is to be downloaded
const ENOUGH = 100; // found files at which a search waits to be asked for more

const $ = (id) => document.getElementById(id);
let prefixes = [];
let shown = { folder: null, text: null }; // what the list holds
let listing = new AbortController();
let opening = new AbortController();
let proceed = null; // fetches the next part of the list

// ---- the list ----

function say(text) {
  $("status").textContent = text;
}

/** Whether names under these components are served. */
function isServed(parts) {
  return prefixes.some((prefix) => {
    const own = prefix.split("/").filter((part) => part !== "");
    return own.every((part, n) => parts[n] === part);
  });
}

function crumbs(parts) {
  const nav = $("crumbs");
  nav.replaceChildren();
  parts.forEach((part, n) => {
    const here = parts.slice(0, n + 1);
    nav.append(el("span", { class: "sep", "aria-hidden": "true" }, "/"));
    const last = n === parts.length - 1 ? "page" : null;
    nav.append(
      isServed(here) ? el("a", { href: `#${uri(here)}/`, "aria-current": last }, label(part)) : el("span", {}, label(part)),
    );
  });
  if (parts.length === 0) nav.append(el("span", {}, "Repository"));
}

function row(entry, under) {
  const path = entry.label ?? entry.name;
  const name = el("span", { class: "name" }, path);
  if (under !== null) {
    const parts = entry.name.split("/").slice(1, -1).slice(under);
    if (parts.length > 0) name.append(el("small", {}, parts.map(label).join("/")));
  }
  const mark = el("span", { class: "mark", "aria-hidden": "true" }, entry.folder ? "▸" : "•");
  const link = el("a", { href: `#${entry.name}${entry.folder ? "/" : ""}` }, mark, name);
  if (entry.folder) {
    link.setAttribute("aria-label", `${path}, folder`);
  } else {
    link.append(el("span", { class: "size" }, size(entry.bytes)), el("span", { class: "time" }, time(entry.mtime_ms)));
  }
  return el("li", {}, link);
}

function add(entries, under) {
  $("list").append(...entries.map((entry) => row(entry, under)));
  mark();
}

/** Marks the row of the file that is open. */
function mark() {
  const file = place(location.hash).file;
  for (const link of $("list").querySelectorAll("a[aria-current]")) link.removeAttribute("aria-current");
  if (file === null) return;
  $("list").querySelector(`a[href="#${CSS.escape(file)}"]`)?.setAttribute("aria-current", "true");
}

/** Runs a step that fetches a part of the list; `rest` says whether there is more. */
function steps(next) {
  listing.abort();
  listing = new AbortController();
  const { signal } = listing;
  $("list").replaceChildren();
  $("more").hidden = true;
  let running = false;
  proceed = async () => {
    if (running) return;
    running = true;
    try {
      const rest = await next(signal);
      if (signal.aborted) return;
      $("more").hidden = !rest;
      running = false;
      if (rest && isSeen($("more"))) proceed();
    } catch (error) {
      if (!signal.aborted) say(`Not to be had: ${error.message}`);
      running = false;
    }
  };
  return proceed();
}

const counted = (n, what, many = `${what}s`) => `${n.toLocaleString()} ${n === 1 ? what : many}`;

function listFolder(parts) {
  const folder = uri(parts);
  let after = null;
  let count = 0;
  say("Loading…");
  return steps(async (signal) => {
    if (!isServed(parts)) {
      add(prefixes.map((name) => ({ folder: true, name, label: name })), null);
      say(parts.length === 0 ? "Prefixes that are served" : `${folder} is not served here; these prefixes are`);
      return false;
    }
    if (after === null && prefixes.includes(folder)) {
      // A prefix may be a file's name, too; no folder lists it.
      const own = await ask("versions", { name: folder, limit: 1 }, signal);
      add(own.entries, null);
      count += own.entries.length;
    }
    const page = await ask("list", after === null ? { folder } : { folder, after }, signal);
    add(page.entries, null);
    count += page.entries.length;
    after = page.next;
    say(count === 0 ? "Nothing here" : counted(count, "entry", "entries") + (after ? " so far" : ""));
    return after !== null;
  });
}

function search(parts, text) {
  const under = isServed(parts) ? [uri(parts)] : [...prefixes];
  let after = null;
  let count = 0;
  say("Searching…");
  return steps(async (signal) => {
    // A question looks at so many files and no more; the page asks again until it has enough to show.
    const before = count;
    while (under.length > 0 && count - before < ENOUGH) {
      const page = await ask("search", { under: under[0], text, ...(after && { after }) }, signal);
      add(page.entries, parts.length);
      count += page.entries.length;
      after = page.next;
      if (after === null) under.shift();
      say(`${counted(count, "file")} found${under.length > 0 ? " so far, searching…" : ""}`);
    }
    if (under.length > 0) say(`${counted(count, "file")} found so far`);
    return under.length > 0;
  });
}

function isSeen(element) {
  return element.getBoundingClientRect().top < innerHeight + 400;
}

// ---- a file ----

async function openFile(name, wanted) {
  opening.abort();
  opening = new AbortController();
  const { signal } = opening;
  $("details").hidden = false;
  document.querySelector("main").classList.add("open");
  $("title").textContent = label(name.split("/").at(-1));
  $("signature").className = "";
  $("signature").textContent = "Checking who signed it…";
  $("download").disabled = true;
  for (const id of ["preview", "facts", "versions"]) $(id).replaceChildren();
  $("older").hidden = true;
  $("title").focus({ preventScroll: true });
  try {
    const file = await ask("file", wanted === null ? { name } : { name, version: wanted }, signal);
    if (signal.aborted) return;
    $("title").textContent = file.label;
    facts(file);
    voucher(file.signature);
    const isGood = file.signature.state !== "refused";
    $("download").disabled = !isGood;
    $("download").onclick = () => download(file);
    versions(file, signal);
    if (isGood) await preview(file, signal);
  } catch (error) {
    if (signal.aborted) return;
    if (error.status === 404 && wanted === null && (await isFolder(name, signal))) {
      location.replace(`#${name}/`);
      return;
    }
    if (signal.aborted) return;
    $("signature").className = "refused";
    $("signature").textContent = error.message;
  }
}

/** Whether there is something under the name: a folder whose address lacks its last slash. */
async function isFolder(name, signal) {
  const page = await ask("list", { folder: name, limit: 1 }, signal).catch(() => null);
  return page !== null && page.entries.length > 0;
}

function closeFile() {
  opening.abort();
  $("details").hidden = true;
  $("preview").replaceChildren();
  document.querySelector("main").classList.remove("open");
}

function voucher(signature) {
  const line = $("signature");
  line.className = signature.state;
  const key = signature.key ? ` ${signature.key}` : "";
  line.textContent = {
    signed: `✓ Signed with the owner's key${key} (${signature.algorithm}), verified`,
    digest: `✓ Whole by its digests; nobody has signed it (${signature.algorithm})`,
    refused: `✗ Not given out: ${signature.why}`,
  }[signature.state];
}

function facts(file) {
  const rows = [
    ["Name", file.name],
    ["Version", `${file.version} (${version(file.version)})`],
    ["Size", `${size(file.bytes)} (${counted(file.bytes, "byte")})`],
    ["Changed", time(file.mtime_ms)],
    ["Segments", `${file.segments.toLocaleString()} of ${file.segment_size.toLocaleString()} bytes`],
    ["Type", file.type],
  ];
  $("facts").replaceChildren(...rows.flatMap(([what, value]) => [el("dt", {}, what), el("dd", {}, value)]));
}

function versions(file, signal) {
  let before = null;
  const next = async () => {
    const page = await ask("versions", { name: file.name, limit: 50, ...(before && { before }) }, signal).catch(() => null);
    if (page === null || signal.aborted) return;
    for (const entry of page.entries) {
      const here = entry.version === file.version ? "true" : null;
      const link = el("a", { href: `#${entry.name}/v=${entry.version}`, "aria-current": here }, version(entry.version));
      $("versions").append(el("li", {}, link, ` ${size(entry.bytes)}`));
    }
    before = page.next;
    $("older").hidden = before === null;
  };
  $("older").onclick = next;
  next();
}

async function preview(file, signal) {
  const box = $("preview");
  const isLarge = file.bytes > SHOWN_BYTES;
  if (file.preview === "text") {
    if (file.bytes > 0) await previewText(file, box, signal);
  } else if (isLarge && ["image", "pdf"].includes(file.preview)) {
    box.append(el("p", {}, "Too large to show here; download it."));
  } else if (file.preview === "image") {
    const image = el("img", { src: file.href, alt: file.label });
    image.onerror = () => box.replaceChildren(el("p", {}, "This picture can't be shown."));
    box.append(image);
  } else if (file.preview === "pdf") {
    box.append(el("iframe", { src: `${file.href}?show=1`, title: file.label, referrerpolicy: "no-referrer" }));
  } else {
    box.append(el(file.preview, { src: file.href, controls: "", preload: "metadata" }));
  }
}

async function previewText(file, box, signal) {
  const answer = await fetch(file.href, { headers: { Range: `bytes=0-${PREVIEW_BYTES - 1}` }, signal });
  if (!answer.ok) {
    const why = await answer.json();
    throw new Error(why.error);
  }
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const text = textOf(bytes, file.bytes > bytes.length);
  const part = text === null ? bytes.subarray(0, DUMP_BYTES) : bytes;
  const pre = el("pre", { tabindex: "0", "aria-label": "Beginning of the file" }, text ?? dump(part));
  box.replaceChildren(pre);
  if (part.length < file.bytes) box.append(el("p", {}, `The first ${size(part.length)} of ${size(file.bytes)}`));
}

/** The bytes as text; null where they are something else. */
function textOf(bytes, isCut) {
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: isCut });
  } catch {
    return null;
  }
}

// ---- downloads: the browser saves the file, however large; the server tells how much it has sent ----

function download(file) {
  const random = crypto.getRandomValues(new Uint8Array(16));
  const id = [...random].map((b) => b.toString(16).padStart(2, "0")).join("");
  const bar = el("progress", { max: 1, value: 0, "aria-label": `Download of ${file.label}` });
  const how = el("span", { class: "how", role: "status" }, "Starting…");
  const close = el("button", { type: "button", "aria-label": `Forget the download of ${file.label}` }, "✕");
  const item = el("div", { class: "item" }, el("span", {}, file.label), bar, how, close);
  $("downloads").append(item);
  $("downloads").hidden = false;
  const link = el("a", { href: `${file.href}?download=${id}`, download: file.label });
  document.body.append(link);
  link.click();
  link.remove();
  const watching = watch(id, file, { item, bar, how });
  close.onclick = () => {
    watching.stop();
    item.remove();
    $("downloads").hidden = $("downloads").childElementCount === 0;
  };
}

function watch(id, file, { item, bar, how }) {
  const began = performance.now();
  let isStopped = false;
  let quiet = 0; // looks in a row at which nothing went on
  const look = async () => {
    if (isStopped) return;
    const answer = await ask("download", { id }).catch(() => null);
    if (isStopped) return;
    const told = answer?.state === "none" ? null : answer;
    if (told !== null) {
      const share = told.total === 0 ? 1 : told.at / told.total;
      bar.value = share;
      item.className = `item ${told.state}`;
      const rate = told.at / ((performance.now() - began) / 1000);
      how.textContent = {
        running: `${Math.floor(share * 100)}% of ${size(told.total)}, ${size(rate)}/s`,
        done: `Done: ${size(told.total)}, verified`,
        stopped: `Stopped at ${size(told.at)}`,
        failed: `Cut off at ${size(told.at)}: the rest does not verify or can't be read`,
      }[told.state];
      if (told.state === "done" || told.state === "failed") return;
    }
    // A browser may ask the person first, or go on with what it had stopped.
    quiet = told?.state === "running" ? 0 : quiet + 1;
    if (quiet < 240) setTimeout(look, quiet > 20 ? 1000 : 200);
    else if (told === null) how.textContent = "The browser did not begin it";
  };
  look();
  return { stop: () => { isStopped = true; } };
}

// ---- the address, keys ----

function show() {
  const at = place(location.hash);
  if (at.file !== null && shown.folder !== null) {
    // The list stays as it is beside the file.
    mark();
    return openFile(at.file, at.version);
  }
  if (at.file === null) closeFile();
  else openFile(at.file, at.version);
  const folder = uri(at.folder);
  if (shown.folder === folder && shown.text === at.text) return mark();
  shown = { folder, text: at.text };
  if ($("text").value.trim() !== (at.text ?? "")) $("text").value = at.text ?? "";
  document.title = at.folder.length === 0 ? "Repository" : folder;
  crumbs(at.folder);
  return at.text ? search(at.folder, at.text) : listFolder(at.folder);
}

function go() {
  const text = $("text").value.trim();
  const query = text === "" ? "" : `?${new URLSearchParams({ q: text })}`;
  const folder = shown.folder === "/" ? "" : shown.folder;
  location.hash = `${folder}/${query}`;
}

let typing = 0;
$("text").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(go, 250);
});
$("search").addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(typing);
  go();
});
$("more").addEventListener("click", () => proceed());
new IntersectionObserver((seen) => {
  if (seen.some((entry) => entry.isIntersecting) && proceed !== null) proceed();
}, { rootMargin: "400px" }).observe($("more"));

function leaveFile() {
  const row = $("list").querySelector("a[aria-current=true]");
  location.hash = `${shown.folder === "/" ? "" : shown.folder}/${shown.text ? `?${new URLSearchParams({ q: shown.text })}` : ""}`;
  row?.focus();
}
$("close").addEventListener("click", leaveFile);

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = event.target instanceof HTMLInputElement;
  if (event.key === "/" && !isTyping) {
    event.preventDefault();
    $("text").focus();
  } else if (event.key === "Escape" && !$("details").hidden) {
    leaveFile();
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && !$("details").contains(event.target)) {
    const rows = [...$("list").querySelectorAll("a")];
    const at = rows.indexOf(document.activeElement);
    const to = at === -1 ? rows[0] : rows[at + (event.key === "ArrowDown" ? 1 : -1)];
    if (to !== undefined) {
      event.preventDefault();
      to.focus();
    }
  }
});
$("skip").addEventListener("click", () => ($("list").querySelector("a") ?? $("list")).focus());
window.addEventListener("hashchange", show);

try {
  prefixes = (await ask("about", {})).prefixes;
  if (prefixes.length === 1 && ["", "#", "#/"].includes(location.hash)) {
    history.replaceState(null, "", `#${prefixes[0] === "/" ? "" : prefixes[0]}/`);
  }
  await show();
} catch (error) {
  say(`Not to be had: ${error.message}`);
}
