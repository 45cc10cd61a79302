// Writes that switches mirror: pipelines with their state and way, and the agents at DataNodes' hosts.
import { $, button, counted, el, say, table } from "/parts.js";

/** So many pipelines are listed. */
export const LISTED = 50;

const STATES = { announced: "incomplete", arming: "arming", armed: "armed", refused: "not mirrored" };

/** From the client over each replica: addresses, a question mark where nobody has announced the hop. */
function way(mirror) {
  const hops = new Map(mirror.hops.map((hop) => [hop.position, hop]));
  const stops = [hops.get(1)?.source.address ?? "?"];
  for (let position = 1; position <= mirror.replicas; position += 1) {
    stops.push(hops.get(position)?.destination.address ?? hops.get(position + 1)?.source.address ?? "?");
  }
  return stops.join(" → ");
}

function facts(mirror) {
  if (mirror.state === "refused") return mirror.what;
  if (mirror.state === "announced") return `waits for ${counted(mirror.missing.length, "connection")}: ${mirror.missing.join(", ")}`;
  const found = [counted(mirror.switches.length, "switch", "switches")];
  if (mirror.arm_ms !== null) found.push(`armed in ${Number(mirror.arm_ms.toFixed(1))} ms`);
  if (mirror.head === null) found.push("the start of its stream is not known yet");
  return found.join(", ");
}

/** The sheet of mirrored writes; hidden where mirroring is off. */
export class Mirrors {
  constructor(choose) {
    this.choose = choose;
    this.mirrors = [];
    this.chosen = undefined;
    this.shown = "";
  }

  /** The chosen pipeline, if it is there. */
  get marked() {
    return this.mirrors.find((mirror) => mirror.id === this.chosen);
  }

  /** `agents` is null where nobody asked for them, as mirroring is off. */
  show(found, agents) {
    $("mirrors").hidden = !found.enabled;
    this.mirrors = found.mirrors;
    // Who was silent for how long changes at each look, and is not shown.
    const text = JSON.stringify([found, agents?.map(({ polled_ago_s: _, ...agent }) => agent), this.chosen]);
    if (!found.enabled || text === this.shown) return;
    this.shown = text;
    const body = $("mirrors-body");
    const had = body.contains(document.activeElement) ? document.activeElement.dataset.mirror : undefined;
    const scrolled = body.querySelector(".scroll")?.scrollLeft ?? 0;
    body.replaceChildren(this.agents(agents ?? []), ...this.pipelines(found));
    if (had !== undefined) body.querySelector(`[data-mirror="${CSS.escape(had)}"]`)?.focus({ preventScroll: true });
    const scroll = body.querySelector(".scroll");
    if (scroll !== null) scroll.scrollLeft = scrolled;
  }

  agents(there) {
    if (there.length === 0) {
      return el("p", { class: "note" }, "No agent is there, so nothing is mirrored. Start ", el("code", {}, "trunkline mirror run"),
        " at each DataNode's host.");
    }
    return el(
      "div",
      { class: "agents" },
      el("span", { class: "quiet" }, `${counted(there.length, "agent")}: `),
      el("ul", { class: "chips", "aria-label": "Agents at DataNodes' hosts" },
        ...there.map((agent) => el("li", { title: agent.addresses.join("\n") }, agent.name,
          el("small", {}, agent.pipelines > 0 ? ` ${counted(agent.pipelines, "pipeline")}` : "")))),
    );
  }

  pipelines(found) {
    if (found.mirrors.length === 0) return [el("p", { class: "note" }, "No write is announced now.")];
    const rows = found.mirrors.map((mirror) => [
      button(String(mirror.block), () => this.choose({ mirror: mirror.id === this.chosen ? undefined : mirror.id }), {
        class: "plain", "data-mirror": mirror.id, "aria-pressed": String(mirror.id === this.chosen),
        title: `Pool ${mirror.pool}, generation ${mirror.generation}`,
        "aria-label": `Block ${mirror.block}: mark its way in the drawing`,
      }),
      el("span", { class: `mode ${mirror.state}` }, STATES[mirror.state] ?? mirror.state),
      way(mirror),
      facts(mirror),
    ]);
    const parts = [table("Pipelines that are mirrored", ["Block", "State", "Client and replicas", "More"], rows)];
    if (found.total > found.mirrors.length) {
      parts.push(el("p", { class: "quiet" }, `The newest ${found.mirrors.length} of ${counted(found.total, "pipeline")}.`));
    }
    return parts;
  }

  /** Another one is chosen, or none; says so to those who listen. */
  mark(chosen) {
    if (chosen === this.chosen) return;
    this.chosen = chosen;
    for (const each of $("mirrors-body").querySelectorAll("[data-mirror]")) {
      each.setAttribute("aria-pressed", String(each.dataset.mirror === chosen));
    }
    const marked = this.marked;
    if (marked !== undefined) say(`Block ${marked.block}: ${counted(marked.links.length, "link")} on its way, marked in the drawing`);
  }
}
