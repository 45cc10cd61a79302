// Fetches argv[2] by RDR, verifying digests, into the file argv[3].
import { writeFile } from "node:fs/promises";

import { digestSigning } from "@ndn/packet";
import { retrieveMetadata } from "@ndn/rdr";
import { fetch } from "@ndn/segmented-object";

import { connect } from "./connect.mjs";

const [prefix, file] = process.argv.slice(2);
const { fw, face } = await connect();
const { name } = await retrieveMetadata(prefix, { fw, verifier: digestSigning, retx: 3 });
await writeFile(file, await fetch(name, { fw, verifier: digestSigning }));
console.log("fetched", name.toString());
face.close();
process.exit(0);
