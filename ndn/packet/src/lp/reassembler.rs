//! Reassembly: bounded in packets, bytes, fragments and time.

#[cfg(test)]
mod tests;

use super::LpPacket;
use bytes::{Bytes, BytesMut};
use std::collections::HashMap;
use std::time::Duration;

/// Bounds of a [`Reassembler`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReassemblerConfig {
    /// Incomplete packets kept at once; the oldest gives way. Default 128.
    pub max_packets: usize,
    /// Bytes of memory that incomplete packets may take at once, tables included; the oldest give way. Default 4 MiB.
    pub max_bytes: usize,
    /// Fragments that one packet may have. Default 400.
    pub max_fragments: u64,
    /// Bytes that one packet may have. Default [`crate::MAX_PACKET`].
    pub max_packet_size: usize,
    /// Time after its last fragment when an incomplete packet is dropped. Default 500 ms.
    pub timeout: Duration,
}

impl Default for ReassemblerConfig {
    fn default() -> Self {
        ReassemblerConfig {
            max_packets: 128,
            max_bytes: 4 << 20,
            max_fragments: 400,
            max_packet_size: crate::MAX_PACKET,
            timeout: Duration::from_millis(500),
        }
    }
}

/// Why a fragment was dropped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReassemblyError {
    /// More fragments than allowed.
    #[error("packet of {0} fragments exceeds the limit")]
    TooManyFragments(u64),
    /// More bytes than allowed.
    #[error("packet of more than {0} bytes exceeds the limit")]
    TooLarge(usize),
    /// It does not fit into the bytes that incomplete packets may take, even alone.
    #[error("no room for it in the {0} bytes of incomplete packets")]
    NoRoom(usize),
    /// It contradicts an earlier fragment of the same packet, which is dropped too.
    #[error("fragment contradicts an earlier one of the same packet")]
    Mismatch,
}

/// What a [`Reassembler`] has done, in packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReassemblyCounters {
    /// Put together from fragments.
    pub completed: u64,
    /// Dropped incomplete after the timeout.
    pub timed_out: u64,
    /// Dropped incomplete to keep within the bounds.
    pub evicted: u64,
    /// Fragments that came twice.
    pub duplicate_fragments: u64,
}

/// Puts fragments together again. Pure: the caller gives the time.
#[derive(Debug)]
pub struct Reassembler {
    config: ReassemblerConfig,
    partial: HashMap<(u64, u64), Box<Partial>>,
    /// Memory of all incomplete packets.
    bytes: usize,
    /// No incomplete packet expires before this.
    earliest: Duration,
    counters: ReassemblyCounters,
}

/// An incomplete packet. Fragments are copied, so that a small one does not keep a large receive buffer alive: those in
/// order straight to their place, others aside until their turn.
#[derive(Debug)]
struct Partial {
    header: LpPacket,
    data: BytesMut,
    /// Fragments in `data`.
    in_order: u64,
    aside: HashMap<u64, Bytes>,
    count: u64,
    /// Bytes of all fragments that came.
    received: usize,
    /// Bytes of the fragments in `aside`.
    aside_bytes: usize,
    expires: Duration,
}

/// What an incomplete packet takes beside its bytes: itself and its place in the table.
const PARTIAL_COST: usize = size_of::<Partial>() + 64;
/// What a fragment set aside takes beside its bytes: its place in the table, its buffer's own.
const ASIDE_COST: usize = 2 * size_of::<(u64, Bytes)>() + 32;

impl Reassembler {
    /// A reassembler with these bounds.
    pub fn new(config: ReassemblerConfig) -> Self {
        Reassembler {
            config,
            partial: HashMap::new(),
            bytes: 0,
            earliest: Duration::MAX,
            counters: ReassemblyCounters::default(),
        }
    }

    /// What was done so far.
    pub fn counters(&self) -> ReassemblyCounters {
        self.counters
    }

    /// Bytes of memory that incomplete packets take now: what came of them, what is set aside for the rest, tables.
    pub fn memory(&self) -> usize {
        self.bytes
    }

    /// Changes the bytes of memory that incomplete packets may take; with the next fragment the oldest give way. For
    /// reassemblers that share a budget.
    pub fn set_max_bytes(&mut self, bytes: usize) {
        self.config.max_bytes = bytes;
    }

    /// Changes the greatest size of a packet in bytes, as when a face agrees to jumbo packets.
    pub fn set_max_packet_size(&mut self, bytes: usize) {
        self.config.max_packet_size = bytes;
    }

    /// Takes a link-layer packet from `sender` (any number that tells the senders on one face apart). Returns the whole
    /// packet when it is one: at once for an unfragmented one, else with the last fragment to come, with the header
    /// fields of the first fragment.
    ///
    /// # Errors
    /// [`ReassemblyError`] when the fragment, and with it the packet, is dropped.
    pub fn receive(
        &mut self,
        now: Duration,
        sender: u64,
        packet: LpPacket,
    ) -> Result<Option<LpPacket>, ReassemblyError> {
        let (Some(sequence), true) = (packet.sequence, packet.frag_count > 1) else {
            return Ok(Some(packet));
        };
        if packet.frag_count > self.config.max_fragments {
            return Err(ReassemblyError::TooManyFragments(packet.frag_count));
        }
        let key = (sender, sequence.wrapping_sub(packet.frag_index));
        self.on_deadline(now);
        let known = self.partial.get(&key);
        let fresh = known.is_none();
        let more = match known {
            Some(partial) if partial.has(packet.frag_index) => 0,
            _ => self.most_cost(&packet, fresh),
        };
        if !self.make_room(key, more) {
            self.counters.evicted += u64::from(self.remove(key).is_some());
            return Err(ReassemblyError::NoRoom(self.config.max_bytes));
        }
        let expires = now + self.config.timeout;
        self.earliest = self.earliest.min(expires);
        let partial = self
            .partial
            .entry(key)
            .or_insert_with(|| Box::new(Partial::new(packet.frag_count, expires)));
        let before = if fresh { 0 } else { partial.memory() };
        let taken = partial.take(packet, expires, self.config.max_packet_size);
        self.bytes = self.bytes + partial.memory() - before;
        match taken {
            Ok(Taken::Complete) => {
                self.counters.completed += 1;
                Ok(self.remove(key).map(|partial| partial.into_packet()))
            }
            // A buffer whose first fragment was the shortest has grown by more than what came.
            Ok(Taken::Incomplete) if !self.make_room(key, 0) => {
                self.counters.evicted += u64::from(self.remove(key).is_some());
                Err(ReassemblyError::NoRoom(self.config.max_bytes))
            }
            Ok(Taken::Incomplete) => Ok(None),
            Ok(Taken::Duplicate) => {
                self.counters.duplicate_fragments += 1;
                Ok(None)
            }
            Err(e) => {
                self.remove(key);
                Err(e)
            }
        }
    }

    /// When [`Reassembler::on_deadline`] may have something to do.
    pub fn deadline(&self) -> Option<Duration> {
        (!self.partial.is_empty()).then_some(self.earliest)
    }

    /// Drops incomplete packets whose time is over.
    pub fn on_deadline(&mut self, now: Duration) {
        if now < self.earliest {
            return;
        }
        let (bytes, counters) = (&mut self.bytes, &mut self.counters);
        self.partial.retain(|_, p| {
            let keep = p.expires > now;
            if !keep {
                *bytes -= p.memory();
                counters.timed_out += 1;
            }
            keep
        });
        let next = self.partial.values().map(|p| p.expires).min();
        self.earliest = next.unwrap_or(Duration::MAX);
        if self.partial.is_empty() {
            self.partial.shrink_to_fit();
        }
    }

    fn remove(&mut self, key: (u64, u64)) -> Option<Box<Partial>> {
        let partial = self.partial.remove(&key)?;
        self.bytes -= partial.memory();
        Some(partial)
    }

    /// The most memory that a fragment can add.
    fn most_cost(&self, packet: &LpPacket, fresh: bool) -> usize {
        let len = packet.fragment.as_ref().map_or(0, Bytes::len);
        let own = if packet.frag_index == 0 {
            let whole = len.saturating_mul(packet.frag_count as usize);
            let announced = packet.prefix_announcement.as_ref().map_or(0, Bytes::len);
            whole.min(self.config.max_packet_size) + announced
        } else {
            len + ASIDE_COST
        };
        own + if fresh { PARTIAL_COST } else { 0 }
    }

    /// Drops the packets that waited longest until `more` bytes for the packet `key` fit; false where they cannot.
    fn make_room(&mut self, key: (u64, u64), more: usize) -> bool {
        loop {
            let another = !self.partial.contains_key(&key);
            let full = another && self.partial.len() >= self.config.max_packets.max(1);
            if !full && self.bytes + more <= self.config.max_bytes {
                return true;
            }
            let oldest = self
                .partial
                .iter()
                .filter(|(k, _)| **k != key)
                .min_by_key(|(_, p)| p.expires);
            let Some(oldest) = oldest.map(|(k, _)| *k) else {
                return false;
            };
            self.remove(oldest);
            self.counters.evicted += 1;
        }
    }
}

enum Taken {
    Complete,
    Incomplete,
    Duplicate,
}

impl Partial {
    fn new(count: u64, expires: Duration) -> Self {
        Partial {
            header: LpPacket::default(),
            data: BytesMut::new(),
            in_order: 0,
            aside: HashMap::new(),
            count,
            received: 0,
            aside_bytes: 0,
            expires,
        }
    }

    /// Whether this fragment has come.
    fn has(&self, index: u64) -> bool {
        index < self.in_order || self.aside.contains_key(&index)
    }

    /// Bytes of memory that it takes.
    fn memory(&self) -> usize {
        let announced = self
            .header
            .prefix_announcement
            .as_ref()
            .map_or(0, Bytes::len);
        PARTIAL_COST
            + announced
            + self.data.capacity()
            + self.aside_bytes
            + self.aside.len() * ASIDE_COST
    }

    fn take(
        &mut self,
        packet: LpPacket,
        expires: Duration,
        max: usize,
    ) -> Result<Taken, ReassemblyError> {
        let index = packet.frag_index;
        if packet.frag_count != self.count {
            return Err(ReassemblyError::Mismatch);
        }
        if self.has(index) {
            return Ok(Taken::Duplicate);
        }
        let fragment = packet.fragment.clone().unwrap_or_default();
        if self.received + fragment.len() > max {
            return Err(ReassemblyError::TooLarge(max));
        }
        self.received += fragment.len();
        self.expires = expires;
        if index == self.in_order {
            if index == 0 {
                self.data
                    .reserve(fragment.len().saturating_mul(self.count as usize).min(max));
            }
            self.data.extend_from_slice(&fragment);
            self.in_order += 1;
            while let Some(next) = self.aside.remove(&self.in_order) {
                self.data.extend_from_slice(&next);
                self.aside_bytes -= next.len();
                self.in_order += 1;
            }
        } else {
            self.aside_bytes += fragment.len();
            self.aside.insert(index, Bytes::copy_from_slice(&fragment));
        }
        if index == 0 {
            let announced = packet.prefix_announcement.as_deref();
            self.header = LpPacket {
                prefix_announcement: announced.map(Bytes::copy_from_slice),
                fragment: None,
                sequence: None,
                frag_index: 0,
                frag_count: 1,
                ..packet
            };
        }
        Ok(if self.in_order == self.count {
            Taken::Complete
        } else {
            Taken::Incomplete
        })
    }

    fn into_packet(self) -> LpPacket {
        LpPacket {
            fragment: Some(self.data.freeze()),
            ..self.header
        }
    }
}
