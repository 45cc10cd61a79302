//! What a forwarder asks its driver to do.

use crate::face::{FaceId, FacePersistency};
use ndn_packet::{Data, Name, NetPacket};

/// Something that the driver must do; see [`Forwarder::poll_output`](crate::Forwarder::poll_output).
#[derive(Debug)]
pub enum Output {
    /// Send a packet.
    Send {
        /// On this face.
        face: FaceId,
        /// This packet.
        packet: NetPacket,
    },
    /// Data was too large for a face, and was not sent; who asked was told by a Nack, where the link has Nacks.
    /// To be counted and logged.
    TooLarge {
        /// The face.
        face: FaceId,
        /// What it did not take.
        data: Data,
    },
    /// Data from a face did not verify, says a downstream; told once for each face, to be logged.
    /// [`FaceCounters::rejected`](crate::FaceCounters::rejected) counts on.
    Rejected {
        /// The face that it came from.
        face: FaceId,
        /// The face that says so.
        downstream: FaceId,
        /// Its name.
        name: Name,
    },
    /// Make a face; answer with [`Forwarder::face_created`](crate::Forwarder::face_created).
    CreateFace(CreateFace),
    /// Close a face, then call [`Forwarder::remove_face`](crate::Forwarder::remove_face).
    DestroyFace {
        /// This face.
        face: FaceId,
    },
    /// Change the settings of a face. They are already in its [`FaceSpec`](crate::FaceSpec).
    UpdateFace(UpdateFace),
}

/// A management command to make a face.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateFace {
    /// To be given back with the answer.
    pub request_id: u64,
    /// FaceUri of the other end, as the command has it.
    pub uri: String,
    /// FaceUri of this end, if the command has it.
    pub local_uri: Option<String>,
    /// What is to end the face.
    pub persistency: FacePersistency,
    /// Greatest packet in one piece, bytes, if the command has it.
    pub mtu: Option<u64>,
    /// Whether local fields are wanted. Refused by the forwarder itself for faces that turn out to be non-local.
    pub local_fields: bool,
    /// Whether the face is to mark congestion, if the command says so.
    pub congestion_marking: Option<bool>,
    /// First interval of congestion marking in nanoseconds, if the command has it.
    pub base_congestion_marking_interval_ns: Option<u64>,
    /// Queue length from which congestion is marked, in bytes, if the command has it.
    pub default_congestion_threshold: Option<u64>,
}

/// A management command to change a face.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdateFace {
    /// The face.
    pub face: FaceId,
    /// What is to end the face from now on, if it changes.
    pub persistency: Option<FacePersistency>,
    /// Greatest packet in one piece, bytes, if it changes.
    pub mtu: Option<u64>,
    /// Whether the face marks congestion, if it changes.
    pub congestion_marking: Option<bool>,
    /// First interval of congestion marking in nanoseconds, if it changes.
    pub base_congestion_marking_interval_ns: Option<u64>,
    /// Queue length from which congestion is marked, in bytes, if it changes.
    pub default_congestion_threshold: Option<u64>,
}

/// Why a driver could not make a face.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateFaceError {
    /// Code for the command's answer, like an HTTP status: 400 malformed URI, 406 unsupported, 409 exists already,
    /// 504 could not connect.
    pub code: u32,
    /// What to tell the user.
    pub text: String,
    /// The face that exists already, for code 409.
    pub existing: Option<FaceId>,
}

/// Why a route could not be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// There is no such face.
    #[error("there is no face {0}")]
    NoSuchFace(FaceId),
    /// The prefix has too many components.
    #[error("the prefix has more than 63 components")]
    PrefixTooLong,
    /// The RIB is full.
    #[error("the RIB is full; raise its bounds of routes and of memory")]
    TooManyRoutes,
}
