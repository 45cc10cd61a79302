//! NDNLPv2: the link-layer packet, its header fields, fragmentation and reassembly.
//!
//! Source: NFD wiki, "NDNLPv2" (revision of 2023). Of its features, reliability (TxSequence, Ack) is not implemented;
//! both fields are passed over.

mod fields;
mod fragmenter;
mod packet;
mod reassembler;

pub use fields::{Lent, NackReason, PitToken};
pub use fragmenter::{FragmentError, Fragmenter};
pub use packet::LpPacket;
pub use reassembler::{Reassembler, ReassemblerConfig, ReassemblyCounters, ReassemblyError};

/// Type numbers of NDNLPv2.
pub mod types {
    /// Fragment: the packet, or a piece of it.
    pub const FRAGMENT: u32 = 0x50;
    /// Sequence number of a fragment, 8 bytes.
    pub const SEQUENCE: u32 = 0x51;
    /// Index of a fragment, from 0.
    pub const FRAG_INDEX: u32 = 0x52;
    /// Number of fragments.
    pub const FRAG_COUNT: u32 = 0x53;
    /// Token that the answer must carry, 1 to 32 bytes.
    pub const PIT_TOKEN: u32 = 0x62;
    /// Network Nack.
    pub const NACK: u32 = 0x320;
    /// Reason of a Nack.
    pub const NACK_REASON: u32 = 0x321;
    /// Face that a packet came from.
    pub const INCOMING_FACE_ID: u32 = 0x32c;
    /// Face that an Interest is to go to.
    pub const NEXT_HOP_FACE_ID: u32 = 0x330;
    /// Cache policy of a Data packet.
    pub const CACHE_POLICY: u32 = 0x334;
    /// Kind of a cache policy: 1 is NoCache.
    pub const CACHE_POLICY_TYPE: u32 = 0x335;
    /// Congestion mark.
    pub const CONGESTION_MARK: u32 = 0x340;
    /// Acknowledgement (link reliability; passed over).
    pub const ACK: u32 = 0x344;
    /// Sequence number for acknowledgements (link reliability; passed over).
    pub const TX_SEQUENCE: u32 = 0x348;
    /// The Interest is not for discovery.
    pub const NON_DISCOVERY: u32 = 0x34c;
    /// Announcement of a prefix.
    pub const PREFIX_ANNOUNCEMENT: u32 = 0x350;
    /// The fragment lies in memory that both ends of the face see: place (2 bytes), length (4) and offset (8). Trunkline's
    /// own, used only where both have agreed to it.
    pub const LENT: u32 = 0x3a0;
    /// Whoever asks has had Data of this name that did not verify. Trunkline's own, in the range that is ignored when
    /// unknown.
    pub const REJECTED: u32 = 0x3a4;
    /// Greatest packet in bytes that the sender of this field takes. Trunkline's own: its number lies in the range that
    /// NDNLPv2 tells a receiver to ignore when unknown.
    pub const MAX_PACKET_SIZE: u32 = 0x3b0;
}
