//! Where the files of contents lie on the disk, and how they get there.
//!
//! ```text
//!   incoming/<id>, <id>.m   being written, or whole and in the index and about to be moved
//!   files/<xx>/<id>, <id>.m
//! ```

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::Disk;
use crate::error::{At, Result};

/// From this many files on, one sync of the whole file system is cheaper than one of each.
pub(crate) const SYNC_ALL_FROM: usize = 8;

/// Where content and manifest are before they are published.
pub(crate) fn incoming(content: u64) -> (PathBuf, PathBuf) {
    let folder = Path::new("incoming");
    (
        folder.join(format!("{content:016x}")),
        folder.join(format!("{content:016x}.m")),
    )
}

/// Where content and manifest are.
pub(crate) fn settled(content: u64) -> (PathBuf, PathBuf) {
    let folder = Path::new("files").join(format!("{:02x}", content >> 56));
    (
        folder.join(format!("{content:016x}")),
        folder.join(format!("{content:016x}.m")),
    )
}

/// Syncs what was published lazily; what is not there any more need not be synced.
pub(crate) fn sync_incoming(disk: &dyn Disk, contents: &[u64]) -> Result<()> {
    if contents.len() >= SYNC_ALL_FROM && disk.sync_all().is_ok() {
        return Ok(());
    }
    for content in contents {
        let paths = incoming(*content);
        for path in [&paths.0, &paths.1] {
            match disk.open(path).and_then(|file| file.sync()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other.at(path)?,
            }
        }
    }
    if contents.is_empty() {
        return Ok(());
    }
    let folder = Path::new("incoming");
    disk.sync_dir(folder).at(folder)
}

/// Moves a published version's files to where they stay.
pub(crate) fn settle(disk: &dyn Disk, content: u64) -> Result<()> {
    let (from, to) = (incoming(content), settled(content));
    for (from, to) in [(&from.0, &to.0), (&from.1, &to.1)] {
        match disk.rename(from, to) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other.at(from)?,
        }
    }
    Ok(())
}

/// Removes content and manifest; what is not there need not be removed.
pub(crate) fn remove_both(disk: &dyn Disk, paths: &(std::path::PathBuf, std::path::PathBuf)) {
    for path in [&paths.0, &paths.1] {
        if let Err(error) = disk.remove(path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), %error, "can't remove a file that is not needed");
        }
    }
}
