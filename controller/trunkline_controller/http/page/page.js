// The page: asks the controller every few seconds, and hands what it says to its parts. What is chosen stands in the
// address.
import { $, ask, counted, el, hostNames, linkName, now, say } from "/parts.js";
import { Details, Past } from "/details.js";
import { Drawing } from "/drawing.js";
import { LISTED, Mirrors } from "/mirrors.js";
import { History, Policy, showAlerts, showDecisions } from "/policy.js";
import { showQueues } from "/queues.js";

const EVERY_MS = { small: 2000, large: 5000 }; // large: hundreds of links, which are a lot to be told of
const LARGE = 500;
const ROLES = { master: "master", standby: "standing by", none: "no role yet" };

const past = new Past();
const drawing = new Drawing(choose);
const details = new Details(past, choose);
const mirrors = new Mirrors(choose);
const policy = new Policy();
const history = new History();
let topology = { switches: [], links: [], hosts: [] };
let links = [];
let looked = 0;
let seen = ""; // counts of the status, by which a change of the topology is noticed at once
let version = null; // the newest of the policy's history
let timer = null;
let isLost = false;
let options = "";

// ---- what is chosen ----

function chosen() {
  const words = new URLSearchParams(location.hash.slice(1));
  const word = (name) => words.get(name) ?? undefined;
  return { link: word("link"), switch: word("switch"), mirror: word("mirror") };
}

/** A link or a switch, or neither; besides, a pipeline: what is said of the one leaves the other as it is. */
function choose(what) {
  const before = chosen();
  const after = "mirror" in what ? { ...before, ...what } : { ...what, mirror: before.mirror };
  const words = new URLSearchParams(Object.entries(after).filter(([, id]) => id !== undefined)).toString();
  window.history.replaceState(null, "", words === "" ? location.pathname : `#${words}`);
  showChosen(true);
  if (Object.keys(what).length === 0) {
    const id = before.link ?? before.switch;
    const stop = $("drawing").querySelector(`[data-id="${CSS.escape(id ?? "")}"]`);
    (stop ?? $("choose")).focus({ preventScroll: true });
  }
}

function showChosen(hasMoved) {
  const what = chosen();
  mirrors.mark(what.mirror);
  drawing.mark(what, mirrors.marked?.links);
  $("choose").value = links.some((link) => link.id === what.link) ? what.link : "";
  return details.show(what, topology, links, hasMoved);
}

function offer() {
  const names = hostNames(topology);
  const named = links.map((link) => [linkName(link, names), link.id]);
  named.sort((a, b) => a[0].localeCompare(b[0], undefined, { numeric: true }));
  const text = JSON.stringify(named);
  if (text === options) return; // an open list must not be drawn anew
  options = text;
  $("choose").replaceChildren(
    el("option", { value: "" }, "choose…"),
    ...named.map(([name, id]) => el("option", { value: id }, name)),
  );
}

// ---- what the controller says ----

function facts(status) {
  const fact = (text, kind = null) => el("li", { class: kind }, text);
  $("facts").replaceChildren(
    fact(ROLES[status.role] ?? status.role, status.role === "master" ? "good" : "warn"),
    fact(counted(status.switches, "switch", "switches")),
    fact(counted(status.links, "link")),
    fact(counted(status.hosts, "host")),
    fact(status.converged ? "switches up to date" : "switches being changed", status.converged ? "good" : "warn"),
    fact(status.dynamic ? "dynamic control on" : "dynamic control off"),
  );
}

function empty(status) {
  const none = topology.switches.length === 0;
  $("nothing").hidden = !none;
  document.body.classList.toggle("empty", none);
  if (!none) return;
  $("nothing").replaceChildren(
    "No switch is connected yet. Point your switches at this controller, as ",
    el("code", {}, "ovs-vsctl set-controller <bridge> tcp:<this host>:6653"),
    status.role === "standby" ? "; this controller stands by, so they may be at another one." : ".",
  );
}

async function look() {
  const status = await ask("status");
  const size = JSON.stringify([status.switches, status.links, status.hosts]);
  const isTurn = looked % 4 === 0;
  const [loads, totals, graph, before, decisions, mirrored] = await Promise.all([
    ask("links"),
    ask("queues/totals"),
    isTurn || size !== seen ? ask("topology") : null,
    ask("policy/history?limit=50"),
    ask("decisions?limit=50"),
    ask(`mirrors?limit=${LISTED}`),
  ]);
  const agents = mirrored.enabled ? (await ask("mirror-agents")).agents : null;
  const newest = before.history[0]?.version ?? null;
  const inForce = isTurn || newest !== version ? await ask("policy") : null;
  looked += 1;
  seen = size;
  version = newest;
  if (graph !== null) topology = graph;
  links = loads.links;
  past.add(links);
  facts(status);
  empty(status);
  offer();
  drawing.show(topology, links);
  showQueues(totals.queues, links, choose);
  mirrors.show(mirrored, agents);
  if (inForce !== null && policy.show(inForce)) {
    say(inForce.policy === null ? "The policy was cleared" : `Policy ${inForce.policy.name} was put in force`);
  }
  history.show(before);
  showDecisions(decisions);
  const fresh = showAlerts(status.alerts);
  if (fresh.length > 0) say(`To mend: ${fresh.join("; ")}`);
  await showChosen(false);
  $("updated").textContent = `at ${now()}`;
}

async function go() {
  clearTimeout(timer);
  try {
    await look();
    if (isLost) say("The controller answers again");
    isLost = false;
    $("lost").hidden = true;
  } catch (error) {
    if (error.status === 401) {
      logIn();
      return;
    }
    if (error.status === undefined) throw error;
    isLost = true;
    looked = 0; // all is asked for again
    const since = $("updated").textContent;
    $("lost").textContent = `${error.message}${since === "" ? "" : `; what is shown is from ${since.slice(3)}`}`;
    $("lost").hidden = false;
  }
  if (!document.hidden) timer = setTimeout(go, links.length > LARGE ? EVERY_MS.large : EVERY_MS.small);
}

// ---- the token ----

function logIn() {
  if ($("login").open) return;
  if (sessionStorage.getItem("token") !== null) {
    $("login-why").textContent = "That is not this controller's token.";
    sessionStorage.removeItem("token");
  }
  $("login").showModal();
}

$("login").addEventListener("cancel", (event) => event.preventDefault());
$("login").querySelector("form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", $("token").value.trim());
  $("token").value = "";
  $("login").close();
  go();
});

// ---- start ----

$("choose").addEventListener("change", (event) => {
  choose(event.target.value === "" ? {} : { link: event.target.value });
});
window.addEventListener("hashchange", () => showChosen(true));
document.addEventListener("visibilitychange", () => document.hidden || go());
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  if (!$("details").hidden) choose({});
  else if (chosen().mirror !== undefined) choose({ mirror: undefined });
});
for (const [name, text] of [["0", "idle"], ["1", "under 25%"], ["2", "under 50%"], ["3", "under 80%"], ["4", "80% and more"]]) {
  $("legend").append(el("span", { class: "key" }, el("span", { class: "swatch", "data-heat": name }), text));
}
go();
