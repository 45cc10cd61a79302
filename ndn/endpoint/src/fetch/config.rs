//! What a fetch is told at its start.

use std::sync::Arc;

use ndn_packet::Name;

use super::manifest::{InMemory, Manifest, ManifestStore};
use crate::ConsumerConfig;
use crate::rdr::Metadata;

/// Bytes of a manifest that are kept in memory where no other place is given: those of 512 Ki segments.
const MANIFEST_BYTES: usize = 16 << 20;

/// Settings of a [`Fetch`](super::Fetch). Start from [`FetchConfig::new`] and change fields.
#[derive(Debug)]
pub struct FetchConfig {
    /// Name of the object: without version but for [`Find::AsNamed`].
    pub object: Name,
    /// How its segments are found. Default: the newest version's, by metadata.
    pub find: Find,
    /// How far it goes. Default: all of the content.
    pub goal: Goal,
    /// How a manifest's digest that a key has signed vouches for the segments. Default: for each as it is read.
    pub check: Check,
    /// How metadata, manifest and segments are asked for and verified. A fetch sets the prefix itself, and the last
    /// segment where metadata tell it.
    pub consumer: ConsumerConfig,
    /// Where a manifest is kept while it is needed. Default: in memory, if it has no more than 16 MiB.
    pub store: Box<dyn ManifestStore>,
}

impl FetchConfig {
    /// The defaults, for the newest version of `object`.
    pub fn new(object: Name) -> Self {
        Self {
            consumer: ConsumerConfig::new(object.clone()),
            object,
            find: Find::Newest,
            goal: Goal::Content,
            check: Check::EachSegment,
            store: Box::new(InMemory::new(MANIFEST_BYTES)),
        }
    }
}

/// How an object's segments are found.
#[derive(Debug, Clone)]
pub enum Find {
    /// By the metadata of its newest version (RDR).
    Newest,
    /// By the metadata of this version.
    Version(u64),
    /// By asking for the name itself with CanBePrefix and MustBeFresh: whatever answers is the first segment. So NFD's
    /// datasets are asked for.
    FirstSegment,
    /// They lie right under the name, which has its version already.
    AsNamed,
    /// By metadata that an earlier fetch has found, with the manifest if it was needed.
    Known(Box<Metadata>, Option<Arc<Manifest>>),
}

/// How far a fetch goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// The metadata.
    Metadata,
    /// The manifest, where one is needed: what it takes to verify each segment.
    Manifest,
    /// All segments.
    Content,
}

/// When segments are held against the manifest's digest that metadata have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Each when it is read, by the manifest, which is fetched before.
    EachSegment,
    /// All together when the last is read, without a manifest: for what is small, and used only when it is whole. Without
    /// a key, too, since whatever vouches for the metadata vouches for this digest in it.
    AtEnd,
}
