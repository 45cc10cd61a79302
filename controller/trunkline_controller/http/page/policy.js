// The policy in force and those before it; what dynamic control decided; what an operator should mend.
import { $, ask, count, counted, el, rate, rates, table, time } from "/parts.js";

const APPLY = "trunkline qos apply policy.yaml";

function file(text) {
  return el("pre", { tabindex: "0", "aria-label": "The policy's file" }, text);
}

function bound(bitS, share, none) {
  if (share !== null) return `${share}%`;
  return bitS > 0 ? rate(bitS) : none;
}

function shareText(share) {
  if (share.min_percent === null && share.max_percent === null && share.max_bit_s > 0) {
    return rates(share.min_bit_s, share.max_bit_s);
  }
  return `${bound(share.min_bit_s, share.min_percent, "0")} – ${bound(share.max_bit_s, share.max_percent, "all")}`;
}

/** The policy in force. It is drawn anew when it is another. */
export class Policy {
  constructor() {
    this.version = undefined;
  }

  show({ policy, applied }) {
    const version = applied === null ? null : applied.version;
    if (version === this.version) return false;
    const isChange = this.version !== undefined;
    this.version = version;
    $("policy-body").replaceChildren(...(policy === null ? [this.none()] : this.some(policy, applied)));
    return isChange;
  }

  none() {
    return el("p", { class: "note" }, "No policy is in force: all traffic is treated alike. Write one as docs/qos.md shows, then ",
      el("code", {}, APPLY), ".");
  }

  some(policy, applied) {
    const byQueue = new Map(policy.queues.map((queue) => [queue.name, []]));
    for (const [category, queue] of Object.entries(policy.categories)) byQueue.get(queue)?.push(category);
    const rows = policy.queues.map((queue) => [
      queue.name + (queue.name === policy.default_queue ? " (default)" : ""),
      (byQueue.get(queue.name) ?? []).join(", ") || "–",
      String(queue.priority),
      ...policy.port_classes.map((each) => {
        const share = each.shares.find((one) => one.queue === queue.name);
        return share === undefined ? "–" : shareText(share);
      }),
    ]);
    const classes = policy.port_classes.map((each) => `${each.name}${each.rate_bit_s > 0 ? `, ${rate(each.rate_bit_s)}` : ""}`);
    const warnings = policy.warnings.map((each) => el("li", {}, `Line ${each.line}: ${each.what}; ${each.remedy}`));
    return [
      el("p", {}, el("strong", {}, policy.name), ` in force as version ${applied.version} since ${time(applied.at_s)}`,
        el("span", { class: "quiet" }, `, by ${applied.by}; ${counted(applied.flows_changed, "flow entry", "flow entries")} changed`)),
      warnings.length > 0 ? el("ul", { class: "warnings", "aria-label": "Warnings" }, ...warnings) : null,
      table("Queues of the policy", ["Queue", "Categories", "Priority", ...classes], rows),
      el("details", {}, el("summary", {}, `${counted(policy.rules.length, "rule")}; show the file`), file(policy.text)),
    ].filter((part) => part !== null);
  }
}

/** Policies that were put in force, newest first; each shows its file when it is opened. */
export class History {
  constructor() {
    this.newest = undefined;
  }

  show({ history, total }) {
    const newest = history[0]?.version;
    if (newest === this.newest && $("history").childElementCount > 0) return;
    this.newest = newest;
    if (history.length === 0) {
      $("history").replaceChildren(el("p", { class: "quiet" }, "None has been put in force so far."));
      return;
    }
    const entries = history.map((applied) => this.entry(applied));
    const rest = total > history.length ? el("p", { class: "quiet" }, `The newest ${count(history.length)} of ${count(total)}.`) : null;
    $("history").replaceChildren(...[el("ol", { class: "history" }, ...entries), rest].filter((part) => part !== null));
  }

  entry(applied) {
    const what = applied.name === "" ? "cleared" : applied.name;
    const facts = `${time(applied.at_s)}, by ${applied.by}, ${counted(applied.flows_changed, "flow entry", "flow entries")} changed`;
    const head = [el("strong", {}, `${applied.version}. ${what}`), el("span", { class: "quiet" }, ` ${facts}`)];
    if (applied.name === "") return el("li", {}, ...head);
    const details = el("details", {}, el("summary", {}, ...head));
    details.addEventListener("toggle", async () => {
      if (!details.open || details.childElementCount > 1) return;
      const shown = await ask(`policy/history/${applied.version}`).then(
        (found) => file(found.text),
        (error) => el("p", { class: "bad" }, `Its file is not to be had: ${error.message}`),
      );
      if (details.childElementCount === 1) details.append(shown);
    });
    return el("li", {}, details);
  }
}

/** Decisions of dynamic control, newest first. */
export function showDecisions({ dynamic, total, decisions }) {
  if (decisions.length === 0) {
    const text = dynamic
      ? "It is on. No reducer has lagged behind so far; when one does, its flows go to a better queue, and that is told here."
      : "It is off: reducers that lag behind get no better queue. Set dynamic.enabled = true in the controller's configuration to turn it on.";
    $("decisions-body").replaceChildren(el("p", { class: "note" }, text));
    return;
  }
  const rows = decisions.map((each) => [time(each.at_s), each.job, each.reducer, each.host, `${each.from_queue} → ${each.to_queue}`, each.why]);
  const parts = [table("Decisions", ["When", "Job", "Reducer", "Host", "Queue", "Why"], rows)];
  if (!dynamic) parts.unshift(el("p", { class: "quiet" }, "It is off now."));
  if (total > decisions.length) parts.push(el("p", { class: "quiet" }, `The newest ${count(decisions.length)} of ${count(total)}.`));
  $("decisions-body").replaceChildren(...parts);
}

/** What an operator should mend; says whether something is new. */
export function showAlerts(alerts) {
  const list = $("alerts").querySelector("ul");
  const known = new Set([...list.children].map((item) => item.dataset.what));
  list.replaceChildren(
    ...alerts.map((alert) =>
      el("li", { "data-what": alert.what }, el("strong", {}, alert.what), ` ${alert.remedy} `, el("span", { class: "quiet" }, time(alert.at_s))),
    ),
  );
  $("alerts").hidden = alerts.length === 0;
  return alerts.filter((alert) => !known.has(alert.what)).map((alert) => alert.what);
}
