//! The general status of a forwarder.

use super::element::{each, put, put_nested, put_text, text};
use super::face_status::PacketCounters;
use super::types;
use bytes::BytesMut;
use ndn_packet::DecodeError;

/// The dataset `status/general`: one element after the other, without one around them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GeneralStatus {
    /// Version of the software.
    pub version: String,
    /// When it started, milliseconds since the Unix epoch.
    pub start_ms: u64,
    /// Its time now, milliseconds since the Unix epoch.
    pub now_ms: u64,
    /// Entries of the name tree; this forwarder has none.
    pub name_tree_entries: u64,
    /// Entries of the FIB.
    pub fib_entries: u64,
    /// Pending Interests.
    pub pit_entries: u64,
    /// What strategies remember.
    pub measurement_entries: u64,
    /// Packets in the content store.
    pub cs_entries: u64,
    /// Packets in and out.
    pub packets: PacketCounters,
    /// Pending Interests that were answered.
    pub satisfied_interests: u64,
    /// Pending Interests that were not.
    pub unsatisfied_interests: u64,
    /// Bytes of pending Interests (this forwarder only).
    pub pit_bytes: u64,
    /// Interests flooded by self-learning (this forwarder only).
    pub floods: u64,
    /// Bytes that wait to be sent on all faces (this forwarder only).
    pub queued_bytes: u64,
    /// Bytes that may wait (this forwarder only).
    pub queue_capacity_bytes: u64,
    /// Packets dropped because all faces together had too much waiting (this forwarder only).
    pub dropped_queues_full: u64,
    /// The memory account, part by part (this forwarder only).
    pub memory: Vec<MemoryPart>,
}

/// A part of what a forwarder takes in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryPart {
    /// Its name, such as `pit`.
    pub name: String,
    /// Bytes held.
    pub bytes: u64,
    /// Bytes that may be held.
    pub capacity_bytes: u64,
}

impl MemoryPart {
    fn put(&self, buf: &mut BytesMut) {
        put_nested(buf, types::MEMORY_PART, |buf| {
            put_text(buf, types::MEMORY_PART_NAME, &self.name);
            put(buf, types::N_MEMORY_BYTES, self.bytes);
            put(buf, types::MEMORY_CAPACITY, self.capacity_bytes);
        });
    }

    fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let mut part = MemoryPart::default();
        each(value, |e| {
            match e.typ {
                types::MEMORY_PART_NAME => part.name = text(e.value),
                types::N_MEMORY_BYTES => part.bytes = e.nonneg()?,
                types::MEMORY_CAPACITY => part.capacity_bytes = e.nonneg()?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(part)
    }
}

impl GeneralStatus {
    /// Name of the dataset under `/localhost/nfd`, without its leading slash.
    pub const NAME: &'static str = "status/general";

    /// Writes the dataset.
    pub fn put(&self, buf: &mut BytesMut) {
        put_text(buf, types::NFD_VERSION, &self.version);
        put(buf, types::START_TIMESTAMP, self.start_ms);
        put(buf, types::CURRENT_TIMESTAMP, self.now_ms);
        put(buf, types::N_NAME_TREE_ENTRIES, self.name_tree_entries);
        put(buf, types::N_FIB_ENTRIES, self.fib_entries);
        put(buf, types::N_PIT_ENTRIES, self.pit_entries);
        put(buf, types::N_MEASUREMENTS_ENTRIES, self.measurement_entries);
        put(buf, types::N_CS_ENTRIES, self.cs_entries);
        self.packets.put(buf);
        put(buf, types::N_SATISFIED_INTERESTS, self.satisfied_interests);
        put(
            buf,
            types::N_UNSATISFIED_INTERESTS,
            self.unsatisfied_interests,
        );
        self.packets.put_dropped(buf);
        put(buf, types::N_PIT_BYTES, self.pit_bytes);
        put(buf, types::N_FLOODS, self.floods);
        put(buf, types::N_QUEUED_BYTES, self.queued_bytes);
        put(buf, types::QUEUE_CAPACITY, self.queue_capacity_bytes);
        put(buf, types::N_DROPPED_QUEUES_FULL, self.dropped_queues_full);
        self.memory.iter().for_each(|part| part.put(buf));
    }

    /// Reads the dataset; unknown fields are passed over.
    ///
    /// # Errors
    /// When a field is malformed.
    pub fn decode(content: &[u8]) -> Result<Self, DecodeError> {
        let mut status = GeneralStatus::default();
        each(content, |e| {
            if status.packets.take(&e)? {
                return Ok(());
            }
            let number = match e.typ {
                types::NFD_VERSION => {
                    status.version = text(e.value);
                    return Ok(());
                }
                types::MEMORY_PART => {
                    status.memory.push(MemoryPart::decode(e.value)?);
                    return Ok(());
                }
                types::START_TIMESTAMP => &mut status.start_ms,
                types::CURRENT_TIMESTAMP => &mut status.now_ms,
                types::N_NAME_TREE_ENTRIES => &mut status.name_tree_entries,
                types::N_FIB_ENTRIES => &mut status.fib_entries,
                types::N_PIT_ENTRIES => &mut status.pit_entries,
                types::N_MEASUREMENTS_ENTRIES => &mut status.measurement_entries,
                types::N_CS_ENTRIES => &mut status.cs_entries,
                types::N_SATISFIED_INTERESTS => &mut status.satisfied_interests,
                types::N_UNSATISFIED_INTERESTS => &mut status.unsatisfied_interests,
                types::N_PIT_BYTES => &mut status.pit_bytes,
                types::N_FLOODS => &mut status.floods,
                types::N_QUEUED_BYTES => &mut status.queued_bytes,
                types::QUEUE_CAPACITY => &mut status.queue_capacity_bytes,
                types::N_DROPPED_QUEUES_FULL => &mut status.dropped_queues_full,
                _ => return Ok(()),
            };
            *number = e.nonneg()?;
            Ok(())
        })?;
        Ok(status)
    }
}
