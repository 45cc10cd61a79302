//! What the driver has yet to do: bounded in bytes, so that a driver that is slower than its faces loses packets and not
//! memory.

use crate::face::FaceId;
use crate::output::Output;
use ndn_packet::NetPacket;
use std::collections::VecDeque;

/// Outputs in order.
#[derive(Debug)]
pub(crate) struct Outputs {
    queue: VecDeque<Output>,
    bytes: usize,
    /// Bytes that the driver has taken and not brought to their end.
    elsewhere: usize,
    max_bytes: usize,
}

/// Bytes that an output counts for.
fn size(output: &Output) -> usize {
    let packet = match output {
        Output::Send { packet, .. } => packet.wire().len(),
        Output::TooLarge { data, .. } => data.wire().len(),
        Output::Rejected { name, .. } => name.value().len(),
        _ => 0,
    };
    size_of::<Output>() + packet
}

impl Outputs {
    /// A queue of so many bytes at most.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Outputs {
            queue: VecDeque::new(),
            bytes: 0,
            elsewhere: 0,
            max_bytes,
        }
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Bytes of outputs and their packets that wait for the driver.
    pub(crate) fn waiting(&self) -> usize {
        self.bytes
    }

    /// The same with those that the driver has taken and not brought to their end.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.elsewhere
    }

    /// Says how many bytes the driver has taken and not brought to their end.
    pub(crate) fn set_elsewhere(&mut self, bytes: usize) {
        self.elsewhere = bytes;
    }

    /// Counts bytes that wait beside the outputs, however much waits already.
    pub(crate) fn hold(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Takes back what [`Outputs::hold`] has counted.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.bytes -= bytes;
    }

    /// Bytes that may wait.
    pub(crate) fn capacity(&self) -> usize {
        self.max_bytes
    }

    /// Whether there is room for a packet of so many bytes.
    #[inline]
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.bytes + self.elsewhere + size_of::<Output>() + bytes <= self.max_bytes
    }

    /// Adds a packet to be sent, for which there is [room](Outputs::has_room).
    #[inline]
    pub(crate) fn send(&mut self, face: FaceId, packet: NetPacket) {
        self.push(Output::Send { face, packet });
    }

    /// Adds what a command asks for, however much waits already: management bounds it.
    #[inline]
    pub(crate) fn push(&mut self, output: Output) {
        self.bytes += size(&output);
        self.queue.push_back(output);
    }

    /// The oldest.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Output> {
        let output = self.queue.pop_front()?;
        self.bytes -= size(&output);
        Some(output)
    }

    /// Bytes, counted one by one.
    #[cfg(test)]
    pub(crate) fn recount(&self) -> usize {
        self.queue.iter().map(size).sum()
    }
}
