//! Files as they are: content in plain files, a manifest beside each, packets made when they are asked for.
//!
//! ```text
//!   incoming/<id>, <id>.m   being written, or whole and in the index and about to be moved
//!   files/<xx>/<id>, <id>.m
//!   bundles/<n>             small ones, content and manifest one after the other: see [`crate::bundles`]
//! ```
//! A version is published in this order: content and manifest are synced, the index names them, they are moved. Whatever
//! a crash leaves in `incoming` is moved if the index names it, kept if its transfer can go on, published if it is a draft
//! that was to be kept, and else removed.

mod block;
mod draft;
mod finish;
mod hasher;
mod lane;
mod manifest;
mod memory;
mod reader;
mod recover;
mod reservation;
mod rewrite;
mod segments;
mod stream;
mod writer;

pub use ndn_endpoint::rdr::manifest_name;
pub use reader::{FileReader, manifest_digests};
pub use writer::{FileWriter, PutOptions, Staged};

pub(crate) use manifest::Facts;
#[cfg(fuzzing)]
pub(crate) use manifest::SegmentEntry;
pub(crate) use memory::ReadFile;
pub(crate) use recover::{partial_upload, recover, remove_unreferenced};
pub(crate) use reservation::Streams;
pub(crate) use segments::DIGEST_BYTES;
pub(crate) use writer::most_small;
