//! Link-layer packets, and the network-layer packets in them.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use ndn_packet::NetPacket;
use ndn_packet::lp::LpPacket;

fuzz_target!(|bytes: &[u8]| {
    let frame = Bytes::copy_from_slice(bytes);
    if let Ok(lp) = LpPacket::decode(frame.clone())
        && lp.has_header()
    {
        assert_eq!(LpPacket::decode(lp.encode()).as_ref(), Ok(&lp));
    }
    if let Ok(Some(packet)) = NetPacket::decode(frame) {
        assert_eq!(NetPacket::decode(packet.to_lp().encode()), Ok(Some(packet)));
    }
});
