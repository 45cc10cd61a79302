// Where switches and hosts stand in the drawing: in layers, so that links go down. Pure: a topology in, places out.

export const SWITCH = { width: 116, height: 40 };
export const HOST = { width: 74, radius: 8 };
const GAP = 22;
const LAYER = { hosts: 136, least: 148, most: 320 }; // between layers; more where the drawing is wide
const MARGIN = { x: 24, top: 36, bottom: 56 };
const UNFOLDED = { perSwitch: 8, inAll: 60 };

const byName = (a, b) => a.name.localeCompare(b.name, undefined, { numeric: true });

/** Distances from some switches, by links. */
function distances(from, neighbours) {
  const found = new Map(from.map((dpid) => [dpid, 0]));
  const queue = [...from];
  for (let at = 0; at < queue.length; at += 1) {
    for (const next of neighbours.get(queue[at])) {
      if (!found.has(next)) {
        found.set(next, found.get(queue[at]) + 1);
        queue.push(next);
      }
    }
  }
  return found;
}

/** Switches that reach each other. */
function parts(switches, neighbours) {
  const seen = new Set();
  const found = [];
  for (const { dpid } of switches) {
    if (seen.has(dpid)) continue;
    const part = [...distances([dpid], neighbours).keys()];
    part.forEach((member) => seen.add(member));
    found.push(part);
  }
  return found;
}

/** The layer of each switch, 0 at the top. */
function layersOf(part, neighbours, hosts) {
  // A leaf-spine or a fat tree: switches with hosts are at the bottom, and no link joins two of a layer.
  const leaves = part.filter((dpid) => hosts.get(dpid).length > 0);
  if (leaves.length > 0) {
    const up = distances(leaves, neighbours);
    const isLayered = part.every((dpid) => [...neighbours.get(dpid)].every((next) => up.get(next) !== up.get(dpid)));
    const top = Math.max(...up.values());
    if (isLayered) return new Map(part.map((dpid) => [dpid, top - up.get(dpid)]));
  }
  // Anything else hangs from its middle.
  let best = null;
  for (const dpid of part) {
    const down = distances([dpid], neighbours);
    const depth = Math.max(...down.values());
    const degree = neighbours.get(dpid).size;
    if (best === null || depth < best.depth || (depth === best.depth && degree > best.degree)) {
      best = { down, depth, degree };
    }
  }
  return best.down;
}

const mean = (numbers) => numbers.reduce((sum, each) => sum + each, 0) / numbers.length;

/** Puts a layer's items as near to where they want to be as their widths let them, in their order. */
function settle(items, width) {
  const wants = items.map((item) => item.want);
  if (items.length > 1 && Math.max(...wants) - Math.min(...wants) < 1) {
    items.forEach((item, n) => (item.x = (width * (n + 0.5)) / items.length));
    return;
  }
  let edge = -Infinity;
  for (const item of items) {
    item.x = Math.max(item.want, edge + item.width / 2);
    edge = item.x + item.width / 2;
  }
  const shift = mean(items.map((item) => item.want - item.x));
  for (const item of items) item.x += shift;
}

/** Places for one part of the network: `items` with x and layer, and the width that they need. */
function place(part, known, neighbours, hosts, folds) {
  const layer = layersOf(part, neighbours, hosts);
  const layers = [];
  const put = (item) => (layers[item.layer] ??= []).push(item);
  const items = new Map();
  for (const dpid of part) {
    const item = { dpid, name: known.get(dpid).name, layer: layer.get(dpid), width: SWITCH.width + GAP, near: [] };
    items.set(dpid, item);
    put(item);
  }
  for (const [dpid, item] of items) {
    for (const next of neighbours.get(dpid)) item.near.push(items.get(next));
    const own = hosts.get(dpid);
    if (own.length === 0) continue;
    const folded = folds || own.length > UNFOLDED.perSwitch;
    const width = (folded ? SWITCH.width : own.length * HOST.width) + GAP;
    item.width = Math.max(item.width, width);
    const group = { dpid, name: item.name, layer: item.layer + 1, width, near: [item], hosts: own, folded };
    item.near.push(group);
    put(group);
  }
  for (let n = 0; n < layers.length; n += 1) layers[n] ??= [];
  // Each layer in the order of what is above it, then by name.
  layers.forEach((row, n) => {
    for (const item of row) {
      const above = item.near.filter((other) => other.layer === n - 1).map((other) => other.at);
      item.order = above.length > 0 ? mean(above) : 0;
    }
    row.sort((a, b) => a.order - b.order || byName(a, b));
    row.forEach((item, at) => (item.at = at));
  });
  const widths = layers.map((row) => row.reduce((sum, item) => sum + item.width, 0));
  const width = Math.max(...widths);
  const widest = widths.indexOf(width);
  let edge = 0;
  for (const item of layers[widest]) {
    item.x = edge + item.width / 2;
    edge += item.width;
  }
  const settleRow = (n, from) => {
    for (const item of layers[n]) {
      const next = item.near.filter((other) => other.layer === from).map((other) => other.x);
      item.want = next.length > 0 ? mean(next) : width / 2;
    }
    settle(layers[n], width);
  };
  for (let n = widest - 1; n >= 0; n -= 1) settleRow(n, n + 1);
  for (let n = widest + 1; n < layers.length; n += 1) settleRow(n, n - 1);
  return layers.flat();
}

/**
 * Places of all switches and hosts: `switches` by datapath id, `hosts` by MAC address, `folded` groups of hosts that are
 * too many to be drawn one by one, each as { x, y }; and the size of the drawing.
 */
export function layout(topology) {
  const known = new Map(topology.switches.map((each) => [each.dpid, each]));
  const neighbours = new Map(topology.switches.map(({ dpid }) => [dpid, new Set()]));
  for (const { a, b } of topology.links) {
    if (!known.has(a.dpid) || !known.has(b.dpid) || a.dpid === b.dpid) continue;
    neighbours.get(a.dpid).add(b.dpid);
    neighbours.get(b.dpid).add(a.dpid);
  }
  const hosts = new Map(topology.switches.map(({ dpid }) => [dpid, []]));
  for (const host of topology.hosts) hosts.get(host.at.dpid)?.push(host);
  for (const own of hosts.values()) own.sort((a, b) => a.at.port - b.at.port || (a.mac < b.mac ? -1 : 1));
  const folds = topology.hosts.length > UNFOLDED.inAll;

  const drawn = parts(topology.switches, neighbours).map((part) => {
    const items = place(part, known, neighbours, hosts, folds);
    const from = Math.min(...items.map((item) => item.x - item.width / 2));
    const to = Math.max(...items.map((item) => item.x + item.width / 2));
    return { items, from, width: to - from };
  });
  const wide = Math.max(0, ...drawn.map((part) => part.width));
  const step = Math.min(Math.max(wide / 9, LAYER.least), LAYER.most);

  const places = { switches: new Map(), hosts: new Map(), folded: [], width: 0, height: 0 };
  let left = MARGIN.x;
  let deepest = 0;
  for (const { items, from, width } of drawn) {
    const lowest = Math.max(...items.map((item) => (item.hosts === undefined ? item.layer : 0)));
    for (const item of items) {
      const x = left + item.x - from;
      const isBelow = item.layer > lowest;
      const y = MARGIN.top + step * Math.min(item.layer, lowest) + (isBelow ? LAYER.hosts : 0);
      deepest = Math.max(deepest, y);
      if (item.hosts === undefined) places.switches.set(item.dpid, { x, y });
      else if (item.folded) places.folded.push({ dpid: item.dpid, count: item.hosts.length, x, y });
      else {
        const first = x - ((item.hosts.length - 1) * HOST.width) / 2;
        item.hosts.forEach((host, n) => places.hosts.set(host.mac, { x: first + n * HOST.width, y, host }));
      }
    }
    left += width + GAP;
  }
  places.width = left - GAP + MARGIN.x;
  places.height = deepest + MARGIN.bottom;
  return places;
}
