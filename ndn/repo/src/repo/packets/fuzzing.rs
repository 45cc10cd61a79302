//! What the fuzz targets drive of the segment logs.

use super::extent;
use super::record::{Change, HEADER, Header, Kind, encode, record_len};
use super::recover::scan;
use crate::disk::OneFile;

/// The number of the log that is read.
const LOG: u32 = 3;

/// The payloads of records: what is read encodes to what is read as the same, in no more memory than came.
pub fn records(bytes: &[u8]) {
    for kind in [Kind::Packet, Kind::Table, Kind::Put, Kind::Remove] {
        if let Some(change) = Change::decode(kind, bytes) {
            let (again, payload) = change.encode();
            assert_eq!(again, kind);
            assert_eq!(Change::decode(kind, &payload), Some(change));
        }
    }
    if let Some(extents) = extent::decode(bytes) {
        // Six numbers each.
        assert!(6 * extents.len() <= bytes.len());
        let mut before = 0;
        for extent in &extents {
            assert!(extent.first >= before && extent.end() > extent.first);
            before = extent.end();
        }
        assert_eq!(extent::decode(&extent::encode(&extents)), Some(extents));
    }
    if let Some(header) = bytes.first_chunk::<HEADER>().and_then(Header::decode) {
        let _ = header.holds(LOG, 0, &bytes[HEADER..]);
    }
}

/// A log. The first byte says how many of the payloads that follow it, each behind kind and length, are sealed into sound
/// records; the rest comes as it is. All sound ones are found, and nothing is read beyond the first that is none.
pub fn log(bytes: &[u8]) {
    let Some((count, mut rest)) = bytes.split_first() else {
        return;
    };
    let (mut file, mut sound, mut ended) = (Vec::new(), 0, false);
    for _ in 0..count % 16 {
        let [kind, len, tail @ ..] = rest else {
            break;
        };
        let (payload, tail) = tail.split_at(usize::from(*len).min(tail.len()));
        rest = tail;
        let kind = [Kind::Packet, Kind::Table, Kind::Put, Kind::Remove][usize::from(kind % 4)];
        let at = file.len() as u64;
        encode(&mut file, LOG, at, kind, payload);
        let tells = matches!(kind, Kind::Put | Kind::Remove);
        ended |= tells && Change::decode(kind, payload).is_none();
        if !ended {
            sound += record_len(payload.len());
        }
    }
    file.extend_from_slice(rest);
    let size = file.len() as u64;
    let mut told = 0;
    let file = OneFile(file);
    let end = scan(&file, LOG, 0, &mut |_| told += 1).expect("it is read from memory");
    assert!(end >= sound as u64 && end <= size.next_multiple_of(8));
    assert!(told * HEADER as u64 <= end);
    // From any place on: whatever is there.
    for at in [1, 8, size / 2, size, size + 1] {
        let _ = scan(&file, LOG, at, &mut |_| {});
    }
}
