//! Fragmentation: a packet larger than the link's MTU becomes several link-layer packets.

use super::LpPacket;
use bytes::Bytes;

/// Bytes that Sequence (10), FragIndex and FragCount (6 each, at most), the LpPacket's and the Fragment's header (4 each) can take.
const FRAGMENT_OVERHEAD: usize = 10 + 6 + 6 + 4 + 4;

/// Why a packet cannot be fragmented.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FragmentError {
    /// The header fields alone do not fit.
    #[error("MTU of {mtu} bytes leaves no room for the packet beside its {header} bytes of header")]
    MtuTooSmall {
        /// The link's MTU in bytes.
        mtu: usize,
        /// Size of the header in bytes.
        header: usize,
    },
}

/// Cuts packets into fragments that fit one link, numbering them.
#[derive(Debug, Clone)]
pub struct Fragmenter {
    next_sequence: u64,
}

impl Fragmenter {
    /// A fragmenter whose first fragment has this sequence number (best a random one).
    pub fn new(first_sequence: u64) -> Self {
        Fragmenter {
            next_sequence: first_sequence,
        }
    }

    /// Appends to `out` the link-layer packets, each at most `mtu` bytes long when encoded, that carry `packet`: one
    /// and the same when it fits. The pieces share its bytes; its header fields go with the first.
    ///
    /// # Errors
    /// [`FragmentError::MtuTooSmall`]; `out` is as before then.
    pub fn fragment(
        &mut self,
        packet: LpPacket,
        mtu: usize,
        out: &mut Vec<LpPacket>,
    ) -> Result<(), FragmentError> {
        let payload = packet.fragment.clone().unwrap_or_default();
        if packet.header_len(payload.len()) + payload.len() <= mtu {
            out.push(packet);
            return Ok(());
        }
        let header = packet.fields_len() + FRAGMENT_OVERHEAD;
        let first = mtu.saturating_sub(header).min(payload.len());
        if first == 0 {
            return Err(FragmentError::MtuTooSmall { mtu, header });
        }
        let later = mtu - FRAGMENT_OVERHEAD;
        let count = 1 + (payload.len() - first).div_ceil(later) as u64;
        let mut pieces = Pieces {
            rest: payload,
            next: first,
            later,
        };
        let sequence = self.next_sequence;
        self.next_sequence = sequence.wrapping_add(count);
        let mut header_fields = Some(packet);
        for (index, piece) in (0..count).zip(&mut pieces) {
            out.push(LpPacket {
                fragment: Some(piece),
                sequence: Some(sequence.wrapping_add(index)),
                frag_index: index,
                frag_count: count,
                ..header_fields.take().unwrap_or_default()
            });
        }
        Ok(())
    }
}

struct Pieces {
    rest: Bytes,
    next: usize,
    later: usize,
}

impl Iterator for Pieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let piece = self.rest.split_to(self.next.min(self.rest.len()));
        self.next = self.later;
        (!piece.is_empty()).then_some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_are_numbered_on() {
        let mut fragmenter = Fragmenter::new(u64::MAX);
        let mut out = Vec::new();
        let packet = LpPacket {
            congestion_mark: Some(1),
            ..LpPacket::bare(vec![0; 150].into())
        };
        fragmenter.fragment(packet.clone(), 100, &mut out).unwrap();
        fragmenter.fragment(packet, 100, &mut out).unwrap();
        let sequences: Vec<_> = out.iter().map(|p| p.sequence.unwrap()).collect();
        assert_eq!(sequences, [u64::MAX, 0, 1, 2, 3, 4]);
        let marks: Vec<_> = out.iter().map(|p| p.congestion_mark.is_some()).collect();
        assert_eq!(marks, [true, false, false, true, false, false]);
    }

    #[test]
    fn an_mtu_without_room() {
        let mut out = Vec::new();
        let packet = LpPacket::bare(vec![0; 100].into());
        for mtu in 0..=FRAGMENT_OVERHEAD {
            let error = Fragmenter::new(0).fragment(packet.clone(), mtu, &mut out);
            assert!(
                matches!(error, Err(FragmentError::MtuTooSmall { .. })),
                "{mtu}"
            );
        }
        Fragmenter::new(0)
            .fragment(packet, FRAGMENT_OVERHEAD + 1, &mut out)
            .unwrap();
        assert_eq!(out.len(), 100);
    }
}
