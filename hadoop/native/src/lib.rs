//! Named data for the Hadoop plug-in: what `io.trunkline.hadoop.ndn.Native`
//! calls.
//!
//! A [`NamedNode`] is a forwarder on a thread of its own, with a face to the
//! router. On it, Java opens producers and pulls of block segments, a source of
//! finalized replicas, single publications and fetches. Each is an application
//! of the forwarder with a face of its own, so that in one process a producer
//! and several readers of the same name meet in the forwarder like hosts do.
//!
//! | thread | does |
//! |---|---|
//! | the node's loop | forwards; runs the endpoint machines; nothing heavy |
//! | a writer of Java | copies a segment into its packet, digests and seals it |
//! | a reader of Java | copies a segment out and verifies or opens the copy |
//! | workers of a block source | read block files, digest segments |
//!
//! Everything but the module `jni` is plain Rust and is tested without a JVM;
//! that holds the exported functions and turns handles, arrays and errors over.

mod blocks;
mod budget;
mod clock;
mod config;
mod content_key;
mod deliver;
mod error;
mod fetch;
mod fixed;
mod handle;
mod jni;
mod low_water;
mod manifest;
mod metadata;
mod node;
mod outbox;
mod own;
mod producer;
mod pull;
mod rate_limit;
mod readable;
mod scalars;
mod seal;
mod segment;
mod session;
mod status;
mod totals;
mod verify;
mod wire;

pub use blocks::{
    ANSWER_LIFETIME, ANSWER_TIMEOUT, Answer, BlockSource, BlockSourceStats, META_HEADER_LEN,
    METADATA_FRESHNESS, Replica, ReplicaError, SealedByWrite, Secrets, Written,
};
pub use config::NodeSettings;
pub use content_key::{Asking, Granted, KeyId, KeyRequest, MAX_IDENTIFIER, Secret};
pub use error::{NativeError, Result};
pub use fetch::FetchSettings;
pub use fixed::FixedData;
pub use handle::Registry;
pub use metadata::BlockMetadata;
pub use node::NamedNode;
pub use producer::{Retain, StreamProducer};
pub use pull::{Pull, PullSettings};
pub use scalars::scalars;
pub use seal::{KEY_ID_LEN, Opener, Sealer, StreamKind, WRITE_KEY_LEN, WriteKey};
pub use segment::{
    ChecksumType, DEFAULT_SEGMENT_BYTES, DIGEST_LEN, HEADER_LEN, HeaderError, MAGIC, SegmentDigest,
    SegmentHeader,
};
pub use session::{HANDSHAKE_LEN, MAX_RECORD_PLAIN, RECORD_OVERHEAD, Role, Session};
pub use totals::{ProducerTotals, PullTotals};
pub use verify::Verify;
