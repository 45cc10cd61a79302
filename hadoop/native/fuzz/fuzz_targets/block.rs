//! What comes as a segment of a block, sealed or not, and as a block's metadata.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trunkline_native::{BlockMetadata, HEADER_LEN, SegmentHeader, StreamKind, WRITE_KEY_LEN, WriteKey};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(header) = SegmentHeader::decode(bytes) {
        assert!(bytes.len() >= HEADER_LEN);
        assert_eq!(SegmentHeader::decode(&header.encode()), Ok(header));
        let _ = (header.checksums_len(), header.body_len());
    }
    if let Ok(metadata) = BlockMetadata::decode(bytes) {
        assert!(metadata.segment_bytes > 0);
    }
    // Nobody without the key makes a segment that opens.
    let opener = WriteKey::new(&[7; WRITE_KEY_LEN]).opener(StreamKind::from_number(0).expect("a kind"));
    assert!(opener.open(b"/name", 0, bytes).is_none());
});
