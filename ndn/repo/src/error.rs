//! What can go wrong in a repository, in the house's form: the thing, the cause, the way out.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ndn_packet::Name;

/// Why a repository did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum RepoError {
    /// Another repository uses the folder.
    #[error("{0}: another repository uses this folder; stop it, or name another folder")]
    Locked(PathBuf),
    /// The folder holds something else, or what a newer version made.
    #[error("{path}: {cause}")]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {}", explain(.error))]
    Io {
        /// The file, relative to the repository's folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The index could not be read or written.
    #[error(
        "index.redb: {0}; run `trunkline repo verify`, and see whether the disk is full or failing"
    )]
    Index(String),
    /// What lies on the disk is not what was put there. It is not served.
    #[error("{name}: {cause}; the disk has changed it: put it again, or remove it")]
    Damaged {
        /// What it is the bytes of.
        name: Name,
        /// What is wrong.
        cause: String,
    },
    /// What several changes that were made durable together failed of.
    #[error(transparent)]
    Shared(Arc<RepoError>),
    /// There is no such thing here.
    #[error("{0}: not in this repository")]
    NotFound(Name),
    /// The version is here already. A name stands for the same bytes for ever.
    #[error("{name}: version {version} is here already; put it under another version")]
    VersionExists {
        /// The object.
        name: Name,
        /// The version.
        version: u64,
    },
    /// A name that no file can have.
    #[error("{name}: {cause}")]
    BadName {
        /// The name.
        name: Name,
        /// What is wrong with it.
        cause: &'static str,
    },
    /// A setting out of its range.
    #[error("{0}")]
    Setting(String),
    /// A folder that still has something in it.
    #[error("{0}: the folder is not empty; remove what is in it first")]
    NotEmpty(Name),
    /// A source that did not bring what it said.
    #[error("{name}: its source brought {came} bytes, not {said}; nothing was published")]
    Short {
        /// The object.
        name: Name,
        /// Bytes announced.
        said: u64,
        /// Bytes that came.
        came: u64,
    },
}

fn explain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => {
            String::from("the disk is full; free some space, or run `trunkline repo compact`")
        }
        io::ErrorKind::PermissionDenied => {
            String::from("permission denied; run as the repository's owner")
        }
        _ => error.to_string(),
    }
}

/// What the repository's calls give.
pub type Result<T> = std::result::Result<T, RepoError>;

/// Names the file of an I/O error.
pub(crate) trait At<T> {
    fn at(self, path: &Path) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|error| RepoError::Io {
            path: path.to_owned(),
            error,
        })
    }
}

impl RepoError {
    /// A version of this number is here.
    pub(crate) fn version_exists(name: &Name, version: u64) -> Self {
        Self::VersionExists {
            name: name.clone(),
            version,
        }
    }

    /// Whether what was put is not on the disk any more; what can't be read for another reason may be read later.
    pub(crate) fn is_loss(&self) -> bool {
        match self {
            RepoError::Damaged { .. } => true,
            RepoError::Io { error, .. } => {
                matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof
                )
            }
            _ => false,
        }
    }

    /// Whether the disk had no room.
    pub fn is_disk_full(&self) -> bool {
        match self {
            RepoError::Io { error, .. } => error.kind() == io::ErrorKind::StorageFull,
            RepoError::Shared(error) => error.is_disk_full(),
            _ => false,
        }
    }
}
