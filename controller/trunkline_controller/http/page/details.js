// The chosen link or switch: loads and how they went lately, queues, flows.
import {
  $, ask, button, count, counted, el, hostNames, kindOf, linkName, loadText, percent, portName, rate, say, svg, switchName,
  table,
} from "/parts.js";
import { flowList } from "/flows.js";
import { queueList, whyNot } from "/queues.js";

const REMEMBERED = 90; // loads of a link, one a poll
const FLOWS = 200;
const SPARK = { width: 320, height: 64 };

/** What loads were lately, by link and direction, as shares or bits a second. */
export class Past {
  constructor() {
    this.links = new Map();
  }

  add(links) {
    const known = new Set(links.map((link) => link.id));
    for (const id of this.links.keys()) if (!known.has(id)) this.links.delete(id);
    for (const link of links) {
      const past = this.links.get(link.id) ?? [];
      past.push([link.from_a?.bit_s ?? 0, link.to_a?.bit_s ?? 0]);
      if (past.length > REMEMBERED) past.shift();
      this.links.set(link.id, past);
    }
  }

  of(id) {
    return this.links.get(id) ?? [];
  }
}

/** The last few minutes of one direction, drawn to `top` bits a second. */
function spark(past, direction, top) {
  const step = SPARK.width / (REMEMBERED - 1);
  const from = REMEMBERED - past.length;
  const points = past.map((pair, n) => {
    const y = SPARK.height - 2 - (SPARK.height - 6) * Math.min(pair[direction] / top, 1);
    return `${((from + n) * step).toFixed(1)} ${y.toFixed(1)}`;
  });
  const line = points.length > 0 ? `M${points.join("L")}` : "";
  const area = points.length > 0 ? `${line}V${SPARK.height}H${(from * step).toFixed(1)}Z` : "";
  return svg(
    "svg",
    { class: "spark", viewBox: `0 0 ${SPARK.width} ${SPARK.height}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("path", { class: "area", d: area }),
    svg("path", { class: "line", d: line }),
  );
}

function direction(name, load, past, which) {
  const top = load !== null && load.rate_bit_s > 0 ? load.rate_bit_s : Math.max(1, ...past.map((pair) => pair[which]));
  const facts = [loadText(load)];
  if (load?.dropped_packets) facts.push(`${counted(load.dropped_packets, "packet")} dropped`);
  return el(
    "div",
    { class: "direction" },
    el("h3", {}, name),
    el("p", { class: "load" }, el("strong", {}, load === null ? "–" : rate(load.bit_s)), ` ${facts.slice(load === null ? 0 : 1).join(", ")}`,
      el("span", { class: "quiet" }, load?.share == null ? "" : ` ${percent(load.share)} of ${rate(load.rate_bit_s)}`)),
    spark(past, which, top),
  );
}

/** The panel; it asks for queues and flows by itself. */
export class Details {
  constructor(past, choose) {
    this.past = past;
    this.choose = choose;
    this.chosen = {};
    this.extra = null; // queues and flows, asked for more rarely than loads
    $("close").addEventListener("click", () => choose({}));
  }

  /** Shows what is chosen, where it is there. */
  async show(chosen, topology, links, hasMoved) {
    const isNew = chosen.link !== this.chosen.link || chosen.switch !== this.chosen.switch;
    this.chosen = chosen;
    const link = links.find((each) => each.id === chosen.link);
    const known = topology.switches.find((each) => each.dpid === chosen.switch);
    const isOpen = link !== undefined || known !== undefined;
    $("details").hidden = !isOpen;
    document.body.classList.toggle("open", isOpen);
    if (!isOpen) return;
    if (isNew) {
      this.extra = el("div", {}, el("p", { class: "quiet" }, "Asking the switches…"));
      this.asked = 0;
    }
    if (link !== undefined) this.link(link, topology);
    else this.switch(known, topology, links);
    if (isNew && hasMoved) {
      $("details-title").focus({ preventScroll: true });
      $("details").scrollIntoView({ block: "nearest" });
      say(`${$("details-title").textContent}: chosen`);
    }
    // Loads are of now; entries and queues of each third look.
    if (this.asked++ % 3 === 0) await (link !== undefined ? this.askLink(link, topology) : this.askSwitch(known, topology));
  }

  link(link, topology) {
    const names = hostNames(topology);
    const past = this.past.of(link.id);
    $("details-title").textContent = linkName(link, names);
    const here = switchName(link.a);
    const there = link.b !== null ? switchName(link.b) : link.hosts.map((mac) => names.get(mac) ?? mac).join(", ");
    const parts = [
      direction(`${here} (${portName(link.a)}) → ${there}`, link.from_a, past, 0),
      direction(`${there}${link.b !== null ? ` (${portName(link.b)})` : ""} → ${here}`, link.to_a, past, 1),
    ];
    this.put(parts);
  }

  switch(known, topology, links) {
    const names = hostNames(topology);
    $("details-title").textContent = known.name || known.dpid;
    const own = links.filter((link) => link.a.dpid === known.dpid || link.b?.dpid === known.dpid);
    const rows = own.map((link) => {
      const isHere = link.a.dpid === known.dpid;
      const [sends, receives] = isHere ? [link.from_a, link.to_a] : [link.to_a, link.from_a];
      const far = link.b === null ? link.hosts.map((mac) => names.get(mac) ?? mac).join(", ") : switchName(isHere ? link.b : link.a);
      return [
        portName(isHere ? link.a : link.b),
        button(far, () => this.choose({ link: link.id }), { class: "plain" }),
        sends === null ? "–" : loadText(sends),
        receives === null ? "–" : loadText(receives),
      ];
    });
    const down = known.ports.filter((port) => !port.up).map((port) => port.name || `port ${port.number}`);
    this.put([
      el(
        "p",
        { class: "quiet" },
        `Datapath ${known.dpid}, ${kindOf(known)}, ${counted(known.ports.length, "port")}` +
          (down.length > 0 ? `, down: ${down.join(", ")}` : ""),
      ),
      rows.length === 0
        ? el("p", { class: "quiet" }, "No link is known here yet: links are found by LLDP, hosts when they first send.")
        : table("Links of this switch", ["Port", "To", "Sends", "Receives"], rows),
    ]);
  }

  /** Loads above, what was asked for below; focus and scrolling stay where they were. */
  put(parts) {
    const body = $("details-body");
    const had = document.activeElement?.textContent;
    const isWithin = body.contains(document.activeElement) && !this.extra.contains(document.activeElement);
    if (this.extra.parentNode !== body) body.replaceChildren(el("div", { class: "now" }, ...parts), this.extra);
    else body.firstChild.replaceChildren(...parts);
    if (isWithin) [...body.querySelectorAll("button")].find((each) => each.textContent === had)?.focus();
  }

  async askLink(link, topology) {
    const ends = link.b === null ? [link.a] : [link.a, link.b];
    const [flows, ...queues] = await Promise.all([
      ask(`links/${link.id}/flows?limit=${FLOWS}`),
      ...ends.map((end) => ask(`queues?dpid=${end.dpid}&port=${end.port}`)),
    ]).catch((error) => this.failed(link.id, this.chosen.link, error));
    if (flows === undefined || this.chosen.link !== link.id) return;
    const parts = ends.flatMap((end, n) => [
      el("h3", {}, `Queues of ${switchName(end)}, ${portName(end)}`),
      queues[n].queues.length === 0
        ? el("p", { class: "quiet" }, "No policy gives this port queues: everything shares its default queue.")
        : queueList(queues[n].queues),
      ...whyNot(queues[n].queues),
    ]);
    this.fill([...parts, el("h3", {}, `Flows that send over it (${count(flows.total)})`), this.flows(flows, topology)]);
  }

  async askSwitch(known, topology) {
    const flows = await ask(`switches/${known.dpid}/flows?limit=${FLOWS}`).catch((error) =>
      this.failed(known.dpid, this.chosen.switch, error),
    );
    if (flows === undefined || flows.flows === undefined || this.chosen.switch !== known.dpid) return;
    this.fill([el("h3", {}, `Flow entries (${count(flows.total)})`), this.flows(flows, topology)]);
  }

  flows(found, topology) {
    const switches = new Map(topology.switches.map((each) => [each.dpid, each.name]));
    return flowList(found, hostNames(topology), switches);
  }

  failed(id, chosen, error) {
    if (id === chosen) this.fill([el("p", { class: "bad" }, `Queues and flows are not to be had: ${error.message}`)]);
    return [];
  }

  fill(parts) {
    const scrolled = [...this.extra.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
    this.extra.replaceChildren(...parts);
    [...this.extra.querySelectorAll(".scroll")].forEach((each, n) => (each.scrollLeft = scrolled[n] ?? 0));
  }
}

