//! HDFS behind a repository: what lies in a Hadoop cluster, published by name and read-only.
//!
//! For `trunkline repo run` with `[store]`. The NameNode tells which blocks a file has (by WebHDFS), the DataNodes serve
//! those blocks by name ([names.md]), and [`Store`] cuts them into segments of the file, signed with the owner's key, many
//! at once or each: no file is read before it is asked for, and none is kept.
//!
//! | asked for | answer |
//! |---|---|
//! | `<file>/32=metadata` | RDR: the version that the NameNode has now |
//! | `<file>/32=metadata/v=<n>/seg=0` | the same of a version told lately |
//! | `<file>/v=<n>/seg=<k>` | a segment of that version, as long as its blocks are there |
//! | `<file>`, with CanBePrefix | the first segment of the version that the NameNode has now |
//! | `<folder>/32=ls/32=metadata` and what it leads to | names in the folder, as the repository's own listings |
//!
//! [`Store`] does no I/O and reads no clock: Interests and Data in, packets out. [`Questions`] are put to the
//! [`NameNode`] by a thread of their own.
//!
//! # What is believed
//! The NameNode is asked by plain HTTP, and a block's bytes are checked by their CRCs, which anybody can make: the owner's
//! signature says what this repository was told. Whoever may answer for `<root>/blocks` in the network between the
//! repository and the cluster, or speak for the NameNode, decides what that is.
//!
//! [names.md]: ../../../docs/names.md

mod batches;
mod cluster;
mod cut;
mod file;
#[cfg(fuzzing)]
pub mod fuzzing;
mod location;
mod namenode;
mod pending;
mod questions;
mod store;
mod webhdfs;

pub use cluster::{Signatures, StoreOptions};
pub use cut::Cut;
pub use location::Location;
pub use namenode::{NameNode, StoreError};
pub use questions::Questions;
pub use store::Store;
