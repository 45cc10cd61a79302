// Connects NDNts' own forwarder to the Unix socket in FWD_SOCKET, with prefix registration.
import { Forwarder } from "@ndn/fw";
import { enableNfdPrefixReg } from "@ndn/nfdmgmt";
import { UnixTransport } from "@ndn/node-transport";
import { digestSigning } from "@ndn/packet";

export async function connect() {
  const fw = Forwarder.create();
  const face = await UnixTransport.createFace({ fw }, process.env.FWD_SOCKET);
  enableNfdPrefixReg(face, { signer: digestSigning });
  return { fw, face };
}
