// Queues: of one port, of the whole network as sums by queue.
import { $, button, counted, el, percent, portName, rate, rates, size, switchName } from "/parts.js";

const MODES = {
  set_queue: "by set_queue",
  dscp: "by DSCP marks",
  none: "without effect",
  unknown: "not known",
};

/** How a queue takes effect, in words. */
export const modeText = (mode) => MODES[mode] ?? mode;

function track(share, promise = null) {
  const fill = el("span", { class: "fill" });
  fill.style.setProperty("width", percent(share));
  const whole = el("span", { class: "track", "aria-hidden": "true" }, fill);
  if (promise !== null) {
    const mark = el("span", { class: "promise" });
    mark.style.setProperty("left", percent(promise));
    whole.append(mark);
  }
  return whole;
}

/** The queues of a port: each with its rate in a bar of what it may take, and a mark at what it is promised. */
export function queueList(queues) {
  const ordered = [...queues].sort((a, b) => a.number - b.number);
  return el(
    "ul",
    { class: "queues" },
    ...ordered.map((queue) => {
      const most = queue.max_bit_s || queue.bit_s || 1;
      const facts = [
        queue.categories.join(", ") || "no category",
        rates(queue.min_bit_s, queue.max_bit_s),
        `${modeText(queue.mode)}${queue.mode === "dscp" ? ` (${queue.dscp})` : ""}`,
      ];
      if (queue.dropped_packets > 0) facts.push(`${counted(queue.dropped_packets, "packet")} dropped`);
      return el(
        "li",
        { "data-nth": String(queue.number % 6) },
        el("span", { class: "bar" }, el("strong", {}, queue.queue), el("span", {}, rate(queue.bit_s))),
        track(Math.min(queue.bit_s / most, 1), Math.min(queue.min_bit_s / most, 1)),
        el("span", { class: "quiet" }, facts.join(" · ")),
      );
    }),
  );
}

const WHY = { none: "Without effect", unknown: "Not known whether they have effect" };

/** Why a port's queues have no effect, or why a probe could not confirm the one they have; nothing where one did. */
export function whyNot(queues) {
  const found = queues.find((queue) => queue.why !== "");
  if (found === undefined) return [];
  return [el("p", { class: "quiet" }, `${WHY[found.mode] ?? "The last probe could not confirm how they take effect"}: ${found.why}`)];
}

/** All queues, each summed over its ports. */
export function showQueues(totals, links, choose) {
  const body = $("queues-body");
  if (totals.length === 0) {
    body.replaceChildren(
      el("p", { class: "note" }, "No queues: no policy is in force, so all traffic of a port shares its default queue. ",
        el("code", {}, "trunkline qos apply policy.yaml"), " puts one in force."),
    );
    return;
  }
  const all = totals.reduce((sum, queue) => sum + queue.bit_s, 0);
  const had = body.contains(document.activeElement) ? document.activeElement.dataset.queue : undefined;
  body.replaceChildren(
    el("div", { class: "cards" }, ...totals.map((queue) => card(queue, all, links, choose))),
  );
  if (had !== undefined) body.querySelector(`[data-queue="${CSS.escape(had)}"]`)?.focus({ preventScroll: true });
}

function card(queue, all, links, choose) {
  const share = all > 0 ? queue.bit_s / all : 0;
  const modes = Object.entries(queue.modes).map(([mode, ports]) =>
    el("span", { class: `mode ${mode}` }, `${modeText(mode)}: ${counted(ports, "port")}`),
  );
  const busiest = queue.busiest;
  const link = busiest && links.find((each) => [each.a, each.b].some((end) => end?.dpid === busiest.dpid && end.port === busiest.port));
  const place = busiest && `${switchName(busiest)}, ${portName(busiest)}`;
  const where =
    busiest === null
      ? "sends nothing now"
      : el("span", {}, `most at `, link ? button(place, () => choose({ link: link.id }), { class: "plain", "data-queue": queue.queue }) : place,
          ` (${rate(queue.busiest_bit_s)})`);
  return el(
    "article",
    { class: "card", "data-nth": String(queue.number % 6) },
    el("h3", {}, queue.queue, el("small", {}, ` queue ${queue.number}, DSCP ${queue.dscp}`)),
    el("p", { class: "sum" }, el("strong", {}, rate(queue.bit_s)), ` ${percent(share)} of what queues send`),
    track(share),
    el("ul", { class: "chips", "aria-label": "Categories" }, ...queue.categories.map((category) => el("li", {}, category))),
    el("p", { class: "quiet" }, where, `; ${size(queue.sent_bytes)} so far, ${counted(queue.dropped_packets, "packet")} dropped`),
    el("p", { class: "modes" }, ...modes),
    queue.modes.none > 0
      ? el("p", { class: "quiet" }, "Without effect means that packets of this queue share the port's default queue: run ",
          el("code", {}, "trunkline-controller agent"), " at the switches' hosts.")
      : null,
  );
}
