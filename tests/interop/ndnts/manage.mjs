// Steers the forwarder by the NFD management protocol: sets a strategy, reads datasets, prints JSON.
import { CsInfo, FaceStatus, GeneralStatus, invoke, list, RibEntry, StrategyChoice } from "@ndn/nfdmgmt";
import { digestSigning, Name } from "@ndn/packet";

import { connect } from "./connect.mjs";

const { fw } = await connect();
const options = { cOpts: { fw }, signer: digestSigning };
const multicast = new Name("/localhost/nfd/strategy/multicast");
const set = await invoke("strategy-choice/set", { name: new Name("/ndnts/m"), strategy: multicast }, options);
const refused = await invoke("faces/create", { uri: "gopher://nowhere" }, options);
const [status] = await list(GeneralStatus, options);
const faces = await list(FaceStatus, options);
const rib = await list(RibEntry, options);
const strategies = await list(StrategyChoice, options);
const [cs] = await list(CsInfo, options);
console.log(JSON.stringify({
  set: set.statusCode,
  refused: refused.statusCode,
  version: status.nfdVersion,
  faces: faces.map((f) => f.uri),
  rib: rib.map((e) => e.name.toString()),
  strategies: strategies.map((s) => [s.name.toString(), s.strategy.toString()]),
  capacity: Number(cs.capacity),
}));
process.exit(0);
