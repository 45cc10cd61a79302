//! What workers tell each other.

use super::errand::Errand;
use super::tour::Tour;
use crate::face::{FaceId, FaceSpec};
use crate::table::strategy_choice::StrategyIndex;
use ndn_packet::{Name, NetPacket};

/// Something that a worker has for another one. The driver brings it there, and keeps an order: what was taken from any
/// worker before something else was taken from any is given to a third one before that. A packet may be late, and lost.
#[derive(Debug)]
pub struct Message(pub(crate) Body);

#[derive(Debug)]
pub(crate) enum Body {
    /// A packet that came on a face, to its home.
    Packet {
        face: FaceId,
        packet: NetPacket,
        /// It is an Interest that has visited all other content stores.
        again: bool,
    },
    /// An Interest that looks for Data in content stores; it has the workers of these bits left to visit, and then goes
    /// back to its home.
    Find {
        face: FaceId,
        packet: NetPacket,
        left: u64,
        home: usize,
    },
    /// A Data that visits workers on its way home.
    Data {
        face: FaceId,
        packet: NetPacket,
        tour: Box<Tour>,
    },
    /// Anything else.
    Control(Box<Control>),
}

#[derive(Debug)]
pub(crate) enum Control {
    FaceAdded(FaceId, FaceSpec),
    FaceRemoved(FaceId),
    FaceUp(FaceId, bool),
    /// What the driver says of a face has changed.
    FaceLink(FaceId, FaceSpec),
    /// What management says of a face has changed.
    FaceManaged(FaceId, FaceSpec),
    /// The next hops of a prefix are these, with their costs.
    NextHops(Name, Vec<(FaceId, u32)>),
    /// The strategy of a prefix is this, or none of its own.
    Strategy(Name, Option<StrategyIndex>),
    /// Capacity in bytes of all content stores together, and whether they admit and serve.
    Store {
        capacity: usize,
        admit: bool,
        serve: bool,
    },
    /// Content under this prefix is to go.
    Erase(Name),
    /// What management asks of all workers in turn.
    Errand(Errand),
}

impl Message {
    pub(crate) fn control(control: Control) -> Self {
        Message(Body::Control(Box::new(control)))
    }

    /// Bytes that it counts for while it waits.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.packet_bytes()
    }

    /// The face that it came by, where it is a packet, of which others may come, and not a change of state or a request
    /// of management.
    pub fn face(&self) -> Option<FaceId> {
        match &self.0 {
            Body::Packet { face, .. } | Body::Find { face, .. } | Body::Data { face, .. } => {
                Some(*face)
            }
            Body::Control(_) => None,
        }
    }

    /// Bytes that it holds beside itself.
    pub fn packet_bytes(&self) -> usize {
        match &self.0 {
            Body::Packet { packet, .. } | Body::Find { packet, .. } | Body::Data { packet, .. } => {
                packet.wire().len()
            }
            Body::Control(_) => size_of::<Control>(),
        }
    }
}
