//! What WebHDFS answers, as JSON. Fields that nobody here needs are not read.

use serde::Deserialize;

/// What a path is. Two that are equal tell of the same content.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    #[serde(rename = "type")]
    pub kind: String,
    /// The name in the folder that was listed.
    #[serde(default)]
    pub path_suffix: String,
    /// Bytes of a file.
    pub length: u64,
    pub block_size: u64,
    /// Milliseconds since the Unix epoch; users may set one before it.
    pub modification_time: i64,
    /// The inode: another for each file that is ever made.
    pub file_id: i64,
    /// Octal.
    pub permission: String,
    #[serde(default, rename = "encBit")]
    pub is_encrypted: bool,
    #[serde(default, rename = "ecBit")]
    pub is_erasure_coded: bool,
}

/// Answer to GETFILESTATUS.
#[derive(Deserialize)]
pub(crate) struct FileStatus {
    #[serde(rename = "FileStatus")]
    pub status: Status,
}

/// Answer to LISTSTATUS_BATCH.
#[derive(Deserialize)]
pub(crate) struct Batch {
    #[serde(rename = "DirectoryListing")]
    pub listing: DirectoryListing,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DirectoryListing {
    pub partial_listing: PartialListing,
    pub remaining_entries: u64,
}

#[derive(Deserialize)]
pub(crate) struct PartialListing {
    #[serde(rename = "FileStatuses")]
    pub statuses: FileStatuses,
}

#[derive(Deserialize)]
pub(crate) struct FileStatuses {
    #[serde(rename = "FileStatus")]
    pub all: Vec<Status>,
}

/// Answer to GET_BLOCK_LOCATIONS.
#[derive(Deserialize)]
pub(crate) struct BlockLocations {
    #[serde(rename = "LocatedBlocks")]
    pub blocks: Blocks,
}

/// The blocks of a part of a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Blocks {
    pub is_under_construction: bool,
    pub located_blocks: Vec<LocatedBlock>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LocatedBlock {
    pub start_offset: u64,
    pub block: Block,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Block {
    pub block_pool_id: String,
    /// Negative for groups of erasure-coded blocks.
    pub block_id: i64,
    pub generation_stamp: u64,
    pub num_bytes: u64,
}

/// Why a question has no answer.
#[derive(Deserialize)]
pub(crate) struct Remote {
    #[serde(rename = "RemoteException")]
    pub exception: RemoteException,
}

#[derive(Deserialize)]
pub(crate) struct RemoteException {
    /// The class, without package.
    pub exception: String,
    #[serde(default)]
    pub message: String,
}
