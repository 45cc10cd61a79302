//! What the fuzz targets of `ndn/repo/fuzz` drive: readers of what a disk gives back, which may have lost or changed
//! anything.

use crate::disk::OneFile;
use crate::index::FileEntry;
use crate::repo::files::{Facts, SegmentEntry};

pub use crate::repo::packets::fuzzing::{log, records};

/// The beginning of a file's manifest and an entry of it: what is read encodes to the same bytes.
pub fn manifest(bytes: &[u8]) {
    if let Some((facts, end)) = Facts::decode(bytes) {
        let end = usize::try_from(end).expect("within what there is");
        let again = if bytes[7] == 1 && bytes[6] == 1 {
            facts.encode_draft()
        } else {
            facts.encode()
        };
        assert_eq!(Facts::decode(&again), Some((facts, end as u64)));
        assert_eq!(again.len(), end);
    }
    let file = OneFile(bytes.to_vec());
    assert_eq!(Facts::read(&file), Facts::decode(bytes));
    if let Some(entry) = FileEntry::decode(bytes) {
        assert!(entry.segment_bytes > 0);
        assert_eq!(FileEntry::decode(&entry.encode()), Some(entry));
    }
    if let Some((entry, content)) = bytes.split_first_chunk() {
        let entry = SegmentEntry::decode(entry);
        let _ = entry.holds(content);
    }
}
