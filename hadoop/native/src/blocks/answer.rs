//! What Java answers to a question for a replica.

use std::path::Path;

use super::served::SealedByWrite;
use crate::content_key::Secret;
use crate::seal::WriteKey;

/// Where a replica lies, as Java answers.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The block file.
    pub block: &'a Path,
    /// Its checksum file.
    pub meta: &'a Path,
    /// Length in bytes.
    pub length: u64,
    /// Generation stamp.
    pub genstamp: u64,
    /// Of a guarded source: what keys come from.
    pub secrets: Secrets<'a>,
}

/// What a guarded replica's keys come from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Secrets<'a> {
    /// The write that it came by, where that is remembered.
    pub written: Option<Written<'a>>,
    /// Serial number of a block key, and what stock code makes with it for this
    /// block.
    pub block_key: Option<(u32, &'a Secret)>,
    /// The password of the token that was asked about.
    pub password: Option<&'a Secret>,
}

/// A write that sealed what it published.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    /// Its key.
    pub key: &'a WriteKey,
    /// Data bytes of its segments.
    pub segment_bytes: u32,
    /// What it has sealed.
    pub sealed: SealedByWrite,
}
