//! Content of metadata packets.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ndn_endpoint::rdr::Metadata;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(metadata) = Metadata::decode(bytes) {
        assert_eq!(Metadata::decode(&metadata.encode()), Ok(metadata));
    }
});
