//! A repository for named data, with no blob in any database.
//!
//! For programs that keep content and serve it by name: the `trunkline repo` command, a file system over a repository, a
//! page in the browser. The crate reads and writes one folder and knows no socket: Interests come in by
//! [`Repo::answer`], and Data goes out.
//!
//! | for | use |
//! |---|---|
//! | a repository | [`Repo`] |
//! | a file in | [`Repo::put`], a [`FileWriter`], [`Repo::publish`] |
//! | a file out, each byte verified | [`Repo::open_file`], a [`FileReader`] |
//! | many things changed as one, or lazily | [`Repo::apply`], [`Repo::lazy`], [`Repo::sync`] |
//! | packets in as they came | [`Repo::insert`], an [`Insertion`] |
//! | what comes from a repository elsewhere: its manifest, and its listings | [`ManifestFile`], [`listed`] |
//! | what is there | [`Repo::list`], [`Repo::versions`], [`Repo::find`], [`Repo::search`], [`Repo::walk_packets`] |
//! | commands from elsewhere | [`protocol::Server`] |
//! | looking after it | [`Repo::status`], [`Repo::verify`], [`Repo::compact`] |
//! | another disk below | [`disk::Disk`] |
//! | what is kept at hand of all this elsewhere, within a bound in bytes | [`Cache`] |
//!
//! ```
//! use ndn_packet::{Interest, Data, Name, SigningKey};
//! use ndn_repo::{PutOptions, Repo, RepoOptions};
//! use std::io::Write;
//!
//! let folder = tempfile::tempdir()?;
//! let repo = Repo::open(folder.path(), SigningKey::DigestSha256, &RepoOptions::default())?;
//! let name: Name = "/photos/cat.jpg".parse()?;
//! let mut file = repo.put(&name, &PutOptions::default())?;
//! file.write_all(b"some bytes")?;
//! let published = repo.publish(vec![file.finish()?])?;
//!
//! let segment = name.append_version(published[0].version).append_segment(0);
//! let interest = Interest::parse(Interest::builder(&segment).build())?;
//! let data = Data::parse(repo.answer(&interest)?.expect("it is here"))?;
//! assert!(data.verify_digest());
//! assert_eq!(data.content_slice(), b"some bytes");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Files as they are
//! Content lies in plain files. While it streams in, each segment's digest is written to a manifest beside it, and one
//! signature, of a metadata packet that tells the manifest's digest, vouches for all. A segment's Data is made when it is
//! asked for, the same bytes each time; the content is checked against the manifest's checksum first, so what a disk has
//! damaged is never sent.
//!
//! # Packets as they came
//! Foreign Data is appended to segment logs bit for bit. The index has an entry for each series of segments, whatever
//! their number. Each record has a checksum, which is checked before the packet is sent.

mod ballast;
mod bundles;
mod cache;
pub mod disk;
mod error;
#[cfg(fuzzing)]
pub mod fuzzing;
mod ids;
mod index;
mod layout;
mod manifest_file;
mod pending;
pub mod protocol;
mod rate_limit;
mod recent;
mod repo;
mod tables;

pub use cache::Cache;
pub use error::{RepoError, Result};
pub use ids::now_us;
pub use manifest_file::ManifestFile;
pub use rate_limit::RateLimit;
pub use repo::files::{
    FileReader, FileWriter, PutOptions, Staged, manifest_digests, manifest_name,
};
pub use repo::packets::{Insertion, SeriesInfo};
pub use repo::{
    Change, Changed, Child, Damage, FileInfo, Listing, MAX_LISTING_BYTES, MAX_SEGMENT_BYTES,
    METADATA_FRESHNESS, NewAttributes, NotChanged, Repo, RepoOptions, Report, SearchPage, Status,
    VERSION_ELEMENT, list_component, listed,
};
pub use tables::FileEntry;
