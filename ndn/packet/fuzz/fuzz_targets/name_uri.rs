//! Names from text and from bytes: what is printed is read again as the same name.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use ndn_packet::Name;

fuzz_target!(|bytes: &[u8]| {
    let from_text = std::str::from_utf8(bytes)
        .ok()
        .and_then(|t| t.parse::<Name>().ok());
    let from_value = Name::from_value(Bytes::copy_from_slice(bytes)).ok();
    for name in from_text.into_iter().chain(from_value) {
        assert_eq!(name.to_string().parse::<Name>().as_ref(), Ok(&name));
        assert_eq!(name.components().rev().count(), name.len());
        assert_eq!(name.parent().len(), name.len().saturating_sub(1));
    }
});
