// Flow entries in words.
import { count, counted, el, size } from "/parts.js";

const PORTS = { 4294967293: "the controller", 4294967291: "a flood", 4294967288: "the port it came by" };
const PROTOCOLS = { 6: "TCP", 17: "UDP", 1: "ICMP", 58: "ICMPv6" };
const TYPES = { 0x800: "IPv4", 0x86dd: "IPv6", 0x806: "ARP", 0x88cc: "LLDP" };

/** What an entry takes, in words; `hosts` are names by MAC address. */
function matchText(match, hosts) {
  const words = [];
  const mac = (address) => hosts.get(address) ?? address;
  const { ip_proto: protocol, eth_type: type } = match;
  if (protocol !== undefined) words.push(PROTOCOLS[protocol] ?? `IP protocol ${protocol}`);
  else if (type !== undefined) words.push(TYPES[type] ?? `Ethernet type 0x${type.toString(16)}`);
  if (match.in_port !== undefined) words.push(`in by port ${match.in_port}`);
  if (match.eth_src !== undefined) words.push(`from ${mac(match.eth_src)}`);
  if (match.ip_src !== undefined) words.push(`from ${match.ip_src}`);
  if (match.l4_src !== undefined) words.push(`from port ${match.l4_src}`);
  if (match.eth_dst !== undefined) words.push(`to ${mac(match.eth_dst)}`);
  if (match.ip_dst !== undefined) words.push(`to ${match.ip_dst}`);
  if (match.l4_dst !== undefined) words.push(`to port ${match.l4_dst}`);
  if (match.ip_dscp !== undefined) words.push(`DSCP ${match.ip_dscp}`);
  if (match.metadata !== undefined) words.push(`metadata 0x${match.metadata.toString(16)}`);
  return words.length === 0 ? "everything" : words.join(" ");
}

/** What an entry does with it. */
function actionText(flow) {
  const words = flow.actions.map((action) => {
    if (action.type === "output") return `to ${PORTS[action.port] ?? `port ${action.port}`}`;
    if (action.type === "group") return `to one of group ${action.group}`;
    if (action.type === "set_queue") return `queue ${action.queue}`;
    return `${action.field} = ${action.value}`;
  });
  if (flow.write_metadata !== null) words.push(`metadata = 0x${flow.write_metadata.value.toString(16)}`);
  if (flow.goto !== null) words.push(`then table ${flow.goto}`);
  return words.length === 0 ? "drop" : words.join(", ");
}

function entry(flow, hosts) {
  const purpose = flow.category === "" ? [] : [flow.category];
  const facts = [`table ${flow.table}, priority ${flow.priority}`, ...purpose, counted(flow.packets, "packet"), size(flow.bytes)];
  return el(
    "li",
    {},
    el("span", {}, matchText(flow.match, hosts), el("span", { class: "quiet" }, " ⇒ "), actionText(flow)),
    el("span", { class: "quiet" }, facts.join(" · ")),
  );
}

/** Entries, under the names of their switches where these are several; `hosts` and `switches` are names. */
export function flowList(found, hosts, switches) {
  if (found.flows.length === 0) return el("p", { class: "quiet" }, "No flow entry of the controller's sends here.");
  const bySwitch = new Map();
  for (const flow of found.flows) {
    if (!bySwitch.has(flow.dpid)) bySwitch.set(flow.dpid, []);
    bySwitch.get(flow.dpid).push(flow);
  }
  const whole = el("div", { class: "flows" });
  for (const [dpid, flows] of bySwitch) {
    if (bySwitch.size > 1) whole.append(el("h4", {}, `At ${switches.get(dpid) ?? dpid}`));
    whole.append(el("ul", {}, ...flows.map((flow) => entry(flow, hosts))));
  }
  if (found.total > found.flows.length) {
    whole.append(el("p", { class: "quiet" }, `The first ${count(found.flows.length)} of ${count(found.total)}.`));
  }
  return whole;
}
