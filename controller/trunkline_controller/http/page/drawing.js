// The drawing of the network: made once for a topology, then only its loads change, so that focus and choice stay.
import { $, counted, heat, hostNames, kindOf, linkName, loadText, percent, rate, svg } from "/parts.js";
import { HOST, SWITCH, layout } from "/layout.js";

const LINE = { least: 1.6, most: 8, apart: 26 };
const LABELLED = 48; // links; of more, only the busy ones have their numbers

/**
 * Where each link leaves its switches: at the top or the bottom of their boxes, side by side in the order of where they
 * go, so that no two begin at one point. By link, as [from, to].
 */
function attachments(links, places) {
  const sides = new Map();
  const found = new Map();
  const attach = (link, nth, here, there) => {
    const side = there.y > here.y ? 1 : there.y < here.y ? -1 : 0;
    const ends = found.get(link.id) ?? [];
    found.set(link.id, ends);
    if (side === 0) {
      ends[nth] = { x: here.x + (Math.sign(there.x - here.x) * SWITCH.width) / 2, y: here.y };
      return;
    }
    const key = `${here.x} ${here.y} ${side}`;
    const own = sides.get(key) ?? [];
    sides.set(key, own);
    own.push({ ends, nth, here, there, side });
  };
  for (const link of links) {
    const [from, to] = [places.switches.get(link.a.dpid), endOf(link, places)];
    if (from === undefined || to === undefined) continue;
    attach(link, 0, from, to);
    if (link.b === null) found.get(link.id)[1] = { x: to.x, y: to.y - HOST.radius };
    else attach(link, 1, to, from);
  }
  for (const own of sides.values()) {
    own.sort((one, other) => one.there.x - other.there.x);
    const step = Math.min(LINE.apart, (SWITCH.width - 16) / own.length);
    own.forEach(({ ends, nth, here, side }, at) => {
      ends[nth] = { x: here.x + (at - (own.length - 1) / 2) * step, y: here.y + (side * SWITCH.height) / 2 };
    });
  }
  return found;
}

/** The place of a link's other end: a switch, or the first of its hosts that is drawn. */
function endOf(link, places) {
  if (link.b !== null) return places.switches.get(link.b.dpid);
  return link.hosts.map((mac) => places.hosts.get(mac)).find((place) => place !== undefined);
}

/** A curve between two places, bowed where it would run through what stands between. */
class Curve {
  constructor(from, to) {
    const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
    this.normal = { x: -(to.y - from.y) / length, y: (to.x - from.x) / length };
    const bow = Math.abs(to.y - from.y) < 1 && Math.abs(to.x - from.x) > SWITCH.width ? 64 : 0;
    this.from = from;
    this.to = to;
    this.middle = { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 - bow };
    this.isStraight = bow === 0;
  }

  shifted(by) {
    const [x, y] = [this.normal.x * by, this.normal.y * by];
    const point = (p) => `${(p.x + x).toFixed(1)} ${(p.y + y).toFixed(1)}`;
    if (this.isStraight) return `M${point(this.from)}L${point(this.to)}`;
    return `M${point(this.from)}Q${point(this.middle)} ${point(this.to)}`;
  }

  at(t, by) {
    const blend = (axis) =>
      (1 - t) ** 2 * this.from[axis] + 2 * t * (1 - t) * this.middle[axis] + t ** 2 * this.to[axis];
    return { x: blend("x") + this.normal.x * by, y: blend("y") + this.normal.y * by };
  }
}

const shorten = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** One link: two lines, their numbers, and something wide enough to be pointed at. */
class Cable {
  constructor(link, curve, name, choose) {
    this.curve = curve;
    this.name = name;
    const straight = curve.shifted(0);
    this.lines = [svg("path", { class: "lane" }), svg("path", { class: "lane" })];
    this.labels = link.b === null ? [] : [svg("text", { class: "number" }), svg("text", { class: "number" })];
    this.title = svg("title");
    this.element = svg(
      "g",
      { class: "link", role: "button", tabindex: "-1", "data-id": link.id },
      this.title,
      svg("path", { class: "halo", d: straight }),
      ...this.lines,
      svg("path", { class: "hit", d: straight }),
      ...this.labels,
    );
    this.element.addEventListener("click", () => choose({ link: link.id }));
    this.text = "";
    this.mark(false);
  }

  /** Whether it is on the way of the chosen pipeline. */
  mark(isOnWay) {
    this.isOnWay = isOnWay;
    this.element.classList.toggle("way", isOnWay);
    this.tell();
  }

  tell() {
    const text = this.isOnWay ? `${this.text}; on the way of the chosen block` : this.text;
    this.element.setAttribute("aria-label", text);
    this.title.textContent = text;
  }

  show(link, isLabelled) {
    [link.from_a, link.to_a].forEach((load, n) => {
      const share = load?.share ?? 0;
      const width = LINE.least + (LINE.most - LINE.least) * share;
      const side = n === 0 ? 1 : -1;
      const aside = side * (1.2 + width / 2);
      this.lines[n].setAttribute("d", this.curve.shifted(aside));
      this.lines[n].setAttribute("stroke-width", width.toFixed(1));
      this.lines[n].dataset.heat = heat(load);
      const label = this.labels[n];
      if (label === undefined) return;
      const isShown = load !== null && (isLabelled || share >= 0.5) && load.bit_s >= 1;
      label.textContent = isShown ? (load.share === null ? rate(load.bit_s) : percent(load.share)) : "";
      const point = this.curve.at(n === 0 ? 0.2 : 0.8, aside);
      label.setAttribute("x", point.x.toFixed(1));
      label.setAttribute("y", (point.y + 4).toFixed(1));
    });
    const [here, there] = link.b === null ? ["to", "from"] : ["forth", "back"];
    this.text = `Link ${this.name}: ${here} ${loadText(link.from_a)}; ${there} ${loadText(link.to_a)}`;
    this.tell();
  }
}

/** The drawing in its place on the page. */
export class Drawing {
  constructor(choose) {
    this.choose = choose;
    this.cables = new Map();
    this.switches = new Map();
    this.numbers = new Map(); // below hosts, by link
    this.known = "";
    this.chosen = {};
    this.way = [];
    $("drawing").addEventListener("keydown", (event) => this.key(event));
    $("drawing").addEventListener("focusin", (event) => this.rove(event.target));
  }

  /** Draws anew where switches, links or hosts are others than before, and shows the loads. */
  show(topology, links) {
    const known = JSON.stringify([topology, links.map((link) => link.id)]);
    if (known !== this.known) {
      this.known = known;
      this.draw(topology, links);
    }
    const isLabelled = links.filter((link) => link.b !== null).length <= LABELLED;
    for (const link of links) {
      this.cables.get(link.id)?.show(link, isLabelled);
      const number = this.numbers.get(link.id);
      if (number !== undefined) {
        const part = (load) => (load === null ? "–" : load.share === null ? rate(load.bit_s) : percent(load.share));
        number.textContent = `↓${part(link.from_a)} ↑${part(link.to_a)}`;
      }
    }
  }

  draw(topology, links) {
    const had = document.activeElement?.closest?.("#drawing [data-id]")?.dataset.id;
    const places = layout(topology);
    const names = hostNames(topology);
    this.cables.clear();
    this.switches.clear();
    this.numbers.clear();
    const ends = attachments(links, places);
    const cables = links
      .filter((link) => ends.has(link.id)) // others go to hosts that are folded
      .map((link) => this.cable(link, new Curve(...ends.get(link.id)), linkName(link, names)));
    const folds = places.folded.flatMap((group) => this.folded(group, places.switches.get(group.dpid)));
    const boxes = topology.switches.map((each) => this.box(each, places.switches.get(each.dpid)));
    const hosts = [...places.hosts.values()].map((place) => this.host(place, links));
    const picture = svg(
      "svg",
      { viewBox: `0 0 ${places.width} ${places.height}`, role: "group", "aria-label": "Switches, links and hosts" },
      ...cables,
      ...folds,
      ...hosts,
      ...boxes,
    );
    picture.classList.toggle("dense", cables.length > LABELLED);
    picture.style.setProperty("--drawn", `${places.width}px`);
    $("drawing").replaceChildren(picture);
    this.mark(this.chosen, this.way);
    const again = had === undefined ? null : picture.querySelector(`[data-id="${CSS.escape(had)}"]`);
    again?.focus({ preventScroll: true });
    if (again === null) this.stops()[0]?.setAttribute("tabindex", "0");
  }

  cable(link, curve, name) {
    const cable = new Cable(link, curve, name, this.choose);
    this.cables.set(link.id, cable);
    return cable.element;
  }

  box(each, place) {
    const left = place.x - SWITCH.width / 2;
    const top = place.y - SWITCH.height / 2;
    const text = `Switch ${each.name}, datapath id ${each.dpid}, ${kindOf(each)}`;
    const element = svg(
      "g",
      { class: "switch", role: "button", tabindex: "-1", "data-id": each.dpid, "aria-label": text },
      svg("title", {}, text),
      svg("rect", { x: left, y: top, width: SWITCH.width, height: SWITCH.height, rx: 9 }),
      svg("text", { x: place.x, y: place.y + 4.5 }, shorten(each.name || each.dpid, 14)),
    );
    element.addEventListener("click", () => this.choose({ switch: each.dpid }));
    this.switches.set(each.dpid, element);
    return element;
  }

  host({ x, y, host }, links) {
    const link = links.find((each) => each.b === null && each.hosts.includes(host.mac));
    const number = svg("text", { class: "number", x, y: y + HOST.radius + 29 });
    if (link !== undefined && link.hosts[0] === host.mac) this.numbers.set(link.id, number);
    const element = svg(
      "g",
      { class: "host" },
      svg("title", {}, [host.mac, ...host.addresses].join("\n")),
      svg("circle", { cx: x, cy: y, r: HOST.radius }),
      svg("text", { x, y: y + HOST.radius + 15 }, shorten(host.addresses[0] ?? host.mac, 15)),
      number,
    );
    if (link !== undefined) element.addEventListener("click", () => this.choose({ link: link.id }));
    return element;
  }

  folded(group, from) {
    const text = counted(group.count, "host");
    const box = { width: SWITCH.width, height: 28 };
    const element = svg(
      "g",
      { class: "hosts", role: "button", tabindex: "-1", "data-id": `hosts ${group.dpid}`, "aria-label": `${text}: list them` },
      svg("rect", { x: group.x - box.width / 2, y: group.y - box.height / 2, width: box.width, height: box.height, rx: 14 }),
      svg("text", { x: group.x, y: group.y + 4.5 }, text),
    );
    element.addEventListener("click", () => this.choose({ switch: group.dpid }));
    return [svg("path", { class: "stem", d: `M${from.x} ${from.y}L${group.x} ${group.y}` }), element];
  }

  /** Marks what is chosen, and the links on the way of the chosen pipeline, by their ids. */
  mark(chosen, way = []) {
    this.chosen = chosen;
    this.way = way;
    const onWay = new Set(way);
    for (const [id, cable] of this.cables) {
      cable.element.setAttribute("aria-pressed", String(id === chosen.link));
      if (cable.isOnWay !== onWay.has(id)) cable.mark(onWay.has(id));
    }
    for (const [dpid, element] of this.switches) element.setAttribute("aria-pressed", String(dpid === chosen.switch));
  }

  // ---- keys: Tab comes here once, arrows go on from one to the next ----

  stops() {
    return [...$("drawing").querySelectorAll("[role=button]")];
  }

  rove(element) {
    if (!element.matches("[role=button]")) return;
    for (const each of this.stops()) each.setAttribute("tabindex", each === element ? "0" : "-1");
  }

  key(event) {
    const stops = this.stops();
    const at = stops.indexOf(event.target);
    if (at < 0) return;
    const steps = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: -1 };
    if (event.key === "Enter" || event.key === " ") {
      event.target.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    } else if (event.key in steps) {
      stops.at(steps[event.key] % stops.length).focus();
    } else return;
    event.preventDefault();
  }
}
