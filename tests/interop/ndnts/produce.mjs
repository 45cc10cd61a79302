// Publishes the file argv[3] under argv[2] with RDR metadata, until it is ended.
import { readFile } from "node:fs/promises";

import { Version } from "@ndn/naming-convention2";
import { digestSigning, Name } from "@ndn/packet";
import { Metadata, serveMetadata } from "@ndn/rdr";
import { BufferChunkSource, serve } from "@ndn/segmented-object";

import { connect } from "./connect.mjs";

const [prefix, file] = process.argv.slice(2);
const { fw } = await connect();
const versioned = new Name(prefix).append(Version.create(Date.now() * 1000));
const source = new BufferChunkSource(await readFile(file), { chunkSize: 7000 });
serve(versioned, source, { pOpts: { fw, dataSigner: digestSigning, announcement: new Name(prefix) } });
serveMetadata(new Metadata(versioned), { signer: digestSigning, pOpts: { fw } });
console.log("serving", versioned.toString());
