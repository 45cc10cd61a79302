//! Consumer and producer of named segment streams: no I/O, no clock.
//!
//! A stream is a name and, under it, numbered Data packets: `<prefix>/seg=0`, `seg=1`, … This crate has both ends of one
//! as state machines, for whoever owns a face: a daemon, a JVM's native library, a simulator. Packets and the time go
//! in, packets and the next deadline come out.
//!
//! | for | use |
//! |---|---|
//! | an object: its newest version, then all of it, verified | [`Fetch`] |
//! | fetching a stream, finished or live, in order and verified | [`Consumer`] |
//! | serving a stream that is being produced | [`Producer`] |
//! | serving an object that lies somewhere, a file | [`Segmenter`] |
//! | one question, one answer | [`Exchange`] |
//! | the newest version of an object | [`rdr`] |
//! | a congestion control of your own | [`congestion`] |
//!
//! # How to drive one
//! After anything was called, [`Consumer::poll_interest`] is called until it gives `None`, [`Consumer::read`] likewise,
//! and [`Consumer::on_deadline`] at [`Consumer::deadline`]. `now` is a [`Duration`](std::time::Duration) since a moment of
//! the driver's choice and never goes back.
//!
//! ```
//! use ndn_endpoint::{Answer, Consumer, ConsumerConfig, Producer, ProducerConfig};
//! use ndn_packet::{ComponentBuf, Data, Name, NetKind, SigningKey};
//! let (now, prefix) = (std::time::Duration::ZERO, "/a/v=1".parse::<Name>()?);
//! let mut producer = Producer::new(ProducerConfig::new(prefix.clone()));
//! let name = prefix.append_segment(0);
//! let wire = Data::builder(&name).final_block_id(ComponentBuf::segment(0)).sign(&SigningKey::DigestSha256);
//! producer.publish(now, 0, wire, &mut Vec::new())?;
//!
//! let mut consumer = Consumer::new(ConsumerConfig::new(prefix), now);
//! while let Some(packet) = consumer.poll_interest(now) {
//!     let NetKind::Interest(interest) = packet.packet else { break };
//!     if let Answer::Data(data) = producer.on_interest(now, &interest, ()) {
//!         consumer.on_data(now, Data::parse(data)?, false);
//!     }
//! }
//! assert_eq!(consumer.read().map(|(segment, _)| segment), Some(0));
//! assert!(consumer.is_done());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The consumer
//! ```text
//!                        Data
//!   ┌─────────▶ Probing ──────▶ Flowing ──── last segment read ────▶ Done
//!   │              │ ▲             │
//!   │     Nack     │ │ back-off    │ Nack NoRoute
//!   │     NoRoute  ▼ │ over        ▼
//!   └─────────────(silence)◀───────┘
//!
//!   from Probing or Flowing: nothing owed comes, or one segment stays away, for give_up_after; no route for as long;
//!   one segment rejected too often; refused by its producer ──▶ Failed(reason)
//! ```
//! *Probing* sends one Interest at a time, so that a network that learns where a stream comes from floods one Interest
//! and not a window full. *Flowing* keeps a window out. In a live stream most of the window waits at the producer for
//! segments not made yet; those Interests are sent anew at the end of their lifetime, and that is no loss. What is known
//! to exist, because it or a later one came or because [`Consumer::known_produced`] said so, is lost when it stays away.
//!
//! # Memory
//! A consumer holds at most [`max_buffered_segments`](ConsumerConfig::max_buffered_segments) packets, a producer at most
//! [`retain_segments`](ProducerConfig::retain_segments) and [`retain_bytes`](ProducerConfig::retain_bytes), and
//! [`max_pending_interests`](ProducerConfig::max_pending_interests) tags of waiting Interests.

pub mod congestion;
mod consumer;
mod exchange;
mod fetch;
mod naming;
mod producer;
pub mod rdr;
mod rtt;
mod segmenter;
mod template;
mod verify;

pub use congestion::{
    Aimd, AimdConfig, CongestionControl, CongestionControlFactory, Cubic, CubicConfig, Fixed,
    FixedConfig,
};
pub use consumer::{Consumer, ConsumerConfig, ConsumerStats, FailReason, Outcome, Rejected, State};
pub use exchange::{Exchange, ExchangeConfig, ExchangeError};
pub use fetch::{
    Check, Fetch, FetchConfig, FetchError, FetchErrorKind, Find, Goal, InMemory, Manifest,
    ManifestStore,
};
pub use naming::SegmentName;
pub use producer::{Answer, Producer, ProducerConfig, ProducerStats, PublishError};
pub use rtt::RtoConfig;
pub use segmenter::Segmenter;
pub use verify::{Distrust, SignedBy, VerifyPolicy};
