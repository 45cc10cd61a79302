//! NDN Packet Format 0.3 and NDNLPv2: views over bytes, encoders, signatures.
//!
//! For whoever holds a buffer that came from a face, or makes one that goes to a face. The crate does
//! no I/O and reads no clock. Packets are views: parsing keeps the [`bytes::Bytes`] it was given and a
//! few offsets; nothing is copied, and the content of a Data is never looked at.
//!
//! | for | use |
//! |---|---|
//! | names | [`Name`] (owned, shared), [`NameRef`] (borrowed), [`Component`], [`ComponentBuf`] |
//! | packets | [`Interest`], [`Data`] with their builders, [`Packet`] |
//! | link layer | [`lp::LpPacket`], [`lp::Fragmenter`], [`lp::Reassembler`], [`PitToken`] |
//! | what a forwarder, a face and an application exchange | [`NetPacket`] |
//! | signatures | [`SigningKey`] (a [`Signer`]), [`Verifier`]; one for many packets: [`Batch`], [`BatchSignature`] |
//! | stream faces | [`tlv::frame_len`] finds where a packet ends |
//!
//! A packet toward a stranger has at most [`MAX_PACKET`] bytes; between two faces that agreed to it (by
//! [`lp::LpPacket::max_packet_size`]) at most [`MAX_JUMBO_PACKET`] by datagrams, [`MAX_STREAM_PACKET`] by a stream.
//!
//! ```
//! use ndn_packet::{Data, Name, SigningKey};
//! let name: Name = "/hadoop/blocks/v=1/seg=0".parse()?;
//! let wire = Data::builder(&name).content(b"bytes").sign(&SigningKey::DigestSha256);
//! let data = Data::parse(wire)?;
//! assert_eq!(data.name().get(3).and_then(|c| c.as_segment()), Some(0));
//! assert_eq!(&data.content()[..], b"bytes");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch;
mod batch_builder;
mod compact;
mod component;
mod data;
mod data_builder;
mod error;
mod interest;
mod interest_builder;
mod key;
mod known_roots;
pub mod lp;
mod name;
mod net;
mod pieces;
mod signature;
mod signer;
#[cfg(test)]
mod testing;
pub mod tlv;
mod uri;
mod verifier;

pub use batch::BatchSignature;
pub use batch_builder::Batch;
pub use component::{AsComponent, Component, ComponentBuf};
pub use data::{Data, content_type};
pub use data_builder::{DataBuilder, DataWriter};
pub use error::{DecodeError, KeyError, NameError};
pub use interest::{DEFAULT_INTEREST_LIFETIME, Interest};
pub use interest_builder::{InterestBuilder, SignedInterestFields};
pub use key::SigningKey;
pub use known_roots::KnownRoots;
pub use lp::{NackReason, PitToken};
pub use name::{Components, Name, NameRef};
pub use net::{NetKind, NetPacket, Packet};
pub use pieces::sha256;
pub use signature::{KeyLocator, KeyLocatorRef, SignatureInfo, ValidityPeriod, signature_type};
pub use signer::Signer;
pub use verifier::Verifier;

/// Greatest size in bytes of a network-layer or link-layer packet toward a stranger (NDN's practical limit).
pub const MAX_PACKET: usize = 8800;

/// Greatest size in bytes of a packet, headers included, on a face by datagrams that has agreed to jumbo packets: one
/// fragment that is lost is a lost packet.
pub const MAX_JUMBO_PACKET: usize = 64 * 1024 + 1024;

/// Greatest size in bytes of a packet, headers included, on a stream face that has agreed to jumbo packets.
pub const MAX_STREAM_PACKET: usize = 1024 * 1024;
