//! A named-data forwarder as a pure state machine: no I/O, no clock.
//!
//! For drivers: a daemon's loop over sockets, a thread inside a JVM, a simulator. Packets and the time go in, packets
//! and the next deadline come out. Time is a [`Duration`](std::time::Duration) since an epoch of the driver's choice
//! and never goes back.
//!
//! ```
//! use ndn_forwarder::{Config, FaceSpec, Forwarder, Output};
//! use ndn_packet::{Interest, Name, NetPacket};
//! use std::time::Duration;
//!
//! let mut forwarder = Forwarder::new(Config::default());
//! let now = Duration::ZERO;
//! let app = forwarder.add_face(now, FaceSpec::local("fd://20", "unix:///run/nfd/nfd.sock"));
//! let peer = forwarder.add_face(now, FaceSpec::remote("tcp4://192.0.2.1:6363", "tcp4://192.0.2.2:40000"));
//! let prefix: Name = "/hadoop".parse()?;
//! forwarder.add_route(&prefix, peer, 10)?;
//!
//! let name: Name = "/hadoop/blocks/v=1/seg=0".parse()?;
//! let interest = Interest::parse(Interest::builder(&name).nonce(7).build())?;
//! forwarder.receive(now, app, NetPacket::interest(interest));
//! let Some(Output::Send { face, .. }) = forwarder.poll_output() else { panic!() };
//! assert_eq!(face, peer);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | for | use |
//! |---|---|
//! | driving it | [`Forwarder`], [`Output`], [`FaceSpec`], [`FaceId`] |
//! | settings, memory bounds | [`Config`] |
//! | memory in use | [`Forwarder::memory`], [`TableMemory`] |
//! | forwarding strategies | [`StrategyKind`] |
//! | congestion marks, for its driver's queues | [`CongestionMarker`] |
//! | one forwarder on several threads | [`Workers`], [`Forwarder::worker`], [`Message`] |
//! | NFD's management protocol, for clients too | [`mgmt`] |

mod burst;
mod config;
mod data;
mod dispatch;
mod face;
mod forwarder;
mod interest;
mod manager;
mod mark;
mod memory;
pub mod mgmt;
mod nack;
mod output;
mod outputs;
mod prefix_policy;
mod request;
mod rib;
mod routes;
mod scope;
mod shard;
mod state;
mod status;
mod strategy;
mod table;
#[cfg(test)]
mod tests;
mod workers;

pub use config::Config;
pub use face::{FaceCounters, FaceId, FacePersistency, FaceScope, FaceSpec, LinkType};
pub use forwarder::Forwarder;
pub use mark::{CongestionMarker, MARK_INTERVAL};
pub use memory::{MemoryUse, TableMemory};
pub use output::{CreateFace, CreateFaceError, Output, RouteError, UpdateFace};
pub use prefix_policy::{PeerPattern, PeerPatternError, PrefixRule};
pub use rib::{CAPTURE, CHILD_INHERIT, origin};
pub use shard::{MAX_WORKERS, Message, Workers};
pub use status::{Queues, Status};
pub use strategy::StrategyKind;
pub use table::cs::CachePolicy;
