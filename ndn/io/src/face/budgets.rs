//! What the faces of a loop may take in memory, and what they take.

use std::sync::Arc;

use ndn_forwarder::MemoryUse;

use crate::config::{MEMORY_PARTS, MemoryConfig};
use crate::face::budget::Budget;
use crate::face::chunk::BufferBudget;
use crate::memory::packets::PacketMemory;

/// The budgets that all faces of a loop, or of several, share.
#[derive(Debug, Clone)]
pub(crate) struct Budgets {
    /// What waits to be sent.
    pub send_queues: Arc<Budget>,
    /// What sockets are read into, and packets hold on to.
    pub receive_buffers: Arc<BufferBudget>,
    /// Packets whose fragments have not all come.
    pub reassembly: Arc<Budget>,
    /// Faces themselves.
    pub faces: Arc<Budget>,
    /// Memory for packets, received or made here, that local peers are lent.
    pub memory: Option<Arc<PacketMemory>>,
}

impl Budgets {
    /// The budgets of a configuration, for so many loops together.
    pub fn new(config: &MemoryConfig, loops: usize) -> Self {
        Self {
            send_queues: Budget::of_loops(config.send_queues_bytes, loops),
            receive_buffers: BufferBudget::of_loops(config.receive_buffers_bytes, loops),
            reassembly: Budget::of_loops(config.reassembly_bytes, loops),
            faces: Budget::of_loops(config.faces_bytes, loops),
            memory: None,
        }
    }

    /// What is held of each and may be, by the names that status shows them by.
    pub fn uses(&self) -> [(&'static str, MemoryUse); 4] {
        let of = |budget: &Budget| MemoryUse {
            bytes: budget.used(),
            capacity_bytes: budget.capacity(),
        };
        let buffers = MemoryUse {
            bytes: self.receive_buffers.used(),
            capacity_bytes: self.receive_buffers.capacity(),
        };
        let uses = [
            of(&self.send_queues),
            buffers,
            of(&self.reassembly),
            of(&self.faces),
        ];
        std::array::from_fn(|i| (MEMORY_PARTS[i], uses[i]))
    }

    /// No bounds but those of each face: for a loop that serves its own process alone.
    pub fn of_one_face(receive_buffers_bytes: usize) -> Self {
        Self {
            send_queues: Budget::unbounded(),
            receive_buffers: BufferBudget::new(receive_buffers_bytes),
            reassembly: Budget::unbounded(),
            faces: Budget::unbounded(),
            memory: None,
        }
    }
}
