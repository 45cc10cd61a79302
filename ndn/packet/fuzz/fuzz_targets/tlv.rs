//! Frames of a stream, and elements one after the other.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ndn_packet::MAX_JUMBO_PACKET;
use ndn_packet::tlv::{self, Reader};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(Some(len)) = tlv::frame_len(bytes, MAX_JUMBO_PACKET) {
        assert!(len <= bytes.len() && len <= MAX_JUMBO_PACKET);
        assert!(tlv::read_header(&bytes[..len]).is_ok());
    }
    if let Ok((value, len)) = tlv::read_var(bytes) {
        let mut again = Vec::new();
        tlv::write_var(&mut again, value);
        assert_eq!(again, bytes[..len]);
    }
    let mut reader = Reader::new(bytes);
    let mut again = Vec::new();
    while let Ok(Some(element)) = reader.next() {
        tlv::write_tlv(&mut again, element.typ, element.value);
        assert_eq!(again, bytes[..element.end]);
    }
});
