//! Records of a segment log: a header of 16 bytes, a payload, zeros up to a multiple of 8.
//!
//! ```text
//!   magic 4 │ kind 1 │ zeros 3 │ length of payload 4 │ CRC-32 4 │ payload
//! ```
//! The checksum covers number of the log and place in it, too: bytes of another place, or left over from another time, are
//! no record. Numbers are little-endian.
//!
//! | kind | payload |
//! |---|---|
//! | packet | a Data packet, as it came |
//! | table | where packets of one series are: for each its place and length, 4 bytes each |
//! | put | key, and extents that hold its packets: from here on they are in the repository |
//! | remove | key, first and last segment: from here on they are not |

use bytes::{BufMut, Bytes};
use ndn_packet::Name;
use ndn_packet::tlv;

use super::extent::{self, Extent};

const MAGIC: u32 = u32::from_le_bytes(*b"TLR1");
/// Bytes of a record's header.
pub(crate) const HEADER: usize = 16;
/// Longest payload: a table of the most packets that an extent may have.
pub(crate) const MAX_PAYLOAD: usize = 8 * extent::MAX_COUNT as usize;

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Packet = 1,
    Table = 2,
    Put = 3,
    Remove = 4,
}

/// A record's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub kind: Kind,
    pub len: usize,
    crc: u32,
}

impl Header {
    /// Reads a header; `None` where there is none.
    pub fn decode(bytes: &[u8; HEADER]) -> Option<Self> {
        let half = |at: usize| {
            bytes[at..]
                .first_chunk()
                .map_or(0, |b| u32::from_le_bytes(*b))
        };
        let kind = match bytes[4] {
            1 => Kind::Packet,
            2 => Kind::Table,
            3 => Kind::Put,
            4 => Kind::Remove,
            _ => return None,
        };
        let len = half(8) as usize;
        let sound = half(0) == MAGIC && bytes[5..8] == [0; 3] && len <= MAX_PAYLOAD;
        sound.then_some(Self {
            kind,
            len,
            crc: half(12),
        })
    }

    /// Whether `payload`, found at `at` of log `log`, is what was written there.
    pub fn holds(&self, log: u32, at: u64, payload: &[u8]) -> bool {
        payload.len() == self.len && checksum(log, at, self.kind, payload) == self.crc
    }
}

/// Bytes that a record of so long a payload takes.
pub(crate) const fn record_len(payload: usize) -> usize {
    (HEADER + payload).next_multiple_of(8)
}

/// Appends a record that will be at `at` of log `log`.
pub(crate) fn encode(buffer: &mut Vec<u8>, log: u32, at: u64, kind: Kind, payload: &[u8]) {
    let end = buffer.len() + record_len(payload.len());
    buffer.put_u32_le(MAGIC);
    buffer.put_u32_le(kind as u32);
    buffer.put_u32_le(payload.len() as u32);
    buffer.put_u32_le(checksum(log, at, kind, payload));
    buffer.put_slice(payload);
    buffer.resize(end, 0);
}

fn checksum(log: u32, at: u64, kind: Kind, payload: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&log.to_le_bytes());
    crc.update(&at.to_le_bytes());
    crc.update(&[kind as u8]);
    crc.update(payload);
    crc.finalize()
}

/// What packets are kept under: a name alone, or a prefix of segment numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub name: Name,
    pub segmented: bool,
}

impl Key {
    pub fn encode(&self, buffer: &mut Vec<u8>) {
        buffer.put_u8(u8::from(self.segmented));
        tlv::write_var(buffer, self.name.value().len() as u64);
        buffer.put_slice(self.name.value());
    }

    pub fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let (segmented, rest) = bytes.split_first()?;
        let (len, header) = tlv::read_var(rest).ok()?;
        let (name, rest) = rest[header..].split_at_checked(usize::try_from(len).ok()?)?;
        *bytes = rest;
        Some(Self {
            name: Name::from_value(Bytes::copy_from_slice(name)).ok()?,
            segmented: match segmented {
                0 => false,
                1 => true,
                _ => return None,
            },
        })
    }
}

/// A change that a record tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// These packets are there.
    Put(Key, Vec<Extent>),
    /// Segments from the first to the last, both included, are not.
    Remove(Key, u64, u64),
}

impl Change {
    /// Kind and payload.
    pub fn encode(&self) -> (Kind, Vec<u8>) {
        let mut payload = Vec::new();
        match self {
            Change::Put(key, extents) => {
                key.encode(&mut payload);
                payload.put_slice(&extent::encode(extents));
                (Kind::Put, payload)
            }
            Change::Remove(key, first, last) => {
                key.encode(&mut payload);
                payload.put_u64_le(*first);
                payload.put_u64_le(*last);
                (Kind::Remove, payload)
            }
        }
    }

    /// Reads the payload of a record of this kind.
    pub fn decode(kind: Kind, mut payload: &[u8]) -> Option<Self> {
        match kind {
            Kind::Put => {
                let key = Key::decode(&mut payload)?;
                Some(Change::Put(key, extent::decode(payload)?))
            }
            Kind::Remove => {
                let key = Key::decode(&mut payload)?;
                let (first, last) = payload.split_at_checked(8)?;
                Some(Change::Remove(
                    key,
                    u64::from_le_bytes(first.try_into().ok()?),
                    u64::from_le_bytes(last.try_into().ok()?),
                ))
            }
            Kind::Packet | Kind::Table => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key() -> Key {
        Key {
            name: "/a/v=1".parse().expect("a name"),
            segmented: true,
        }
    }

    #[test]
    fn changes_go_round() {
        let extent = Extent {
            first: 3,
            count: 2,
            log: 1,
            table_log: 2,
            table: 64,
            bytes: 100,
        };
        for change in [
            Change::Put(key(), vec![extent]),
            Change::Put(key(), vec![]),
            Change::Remove(key(), 0, u64::MAX),
        ] {
            let (kind, payload) = change.encode();
            assert_eq!(Change::decode(kind, &payload), Some(change));
            assert_eq!(Change::decode(Kind::Packet, &payload), None);
        }
    }

    #[test]
    fn a_record_holds_at_its_place_alone() {
        let mut buffer = Vec::new();
        encode(&mut buffer, 7, 4096, Kind::Packet, b"payload");
        assert_eq!(buffer.len(), record_len(7));
        let head: &[u8; HEADER] = buffer.first_chunk().expect("a header");
        let header = Header::decode(head).expect("a header");
        assert_eq!((header.kind, header.len), (Kind::Packet, 7));
        assert!(header.holds(7, 4096, b"payload"));
        assert!(!header.holds(8, 4096, b"payload") && !header.holds(7, 4104, b"payload"));
        for bit in 0..(HEADER + 7) * 8 {
            let mut changed = buffer.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let found = changed.first_chunk().and_then(Header::decode);
            let payload = &changed[HEADER..HEADER + 7];
            assert!(
                found.is_none_or(|h| !h.holds(7, 4096, payload)),
                "bit {bit}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_panic(bytes: Vec<u8>) {
            for kind in [Kind::Put, Kind::Remove] {
                let _ = Change::decode(kind, &bytes);
            }
            if let Some(head) = bytes.first_chunk() {
                let _ = Header::decode(head);
            }
        }
    }
}
