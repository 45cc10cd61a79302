//! Looking after a repository: what it holds, whether it is whole, and the room it takes.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use ndn_packet::Name;

use super::files;
use super::{FileInfo, Repo};
use crate::error::{At, RepoError, Result};
use crate::index::{FILES, FOLDERS, Kept, failed, file_entry, name_of, successor};
use crate::layout::incoming;

/// What a repository holds and has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Status {
    /// Versions of files.
    pub files: u64,
    /// Bytes of their contents.
    pub file_bytes: u64,
    /// Bytes of the index.
    pub index_bytes: u64,
    /// Bytes that can still be written.
    pub free_bytes: u64,
    /// Series of packets kept as they came.
    pub series: u64,
    /// Packets in them.
    pub packets: u64,
    /// Bytes of the segment logs.
    pub log_bytes: u64,
    /// Transfers that were interrupted, or go on now.
    pub incoming: u64,
    /// How often something damaged was asked for, and not sent, since the start.
    pub damaged_answers: u64,
}

/// Something that is not what was put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// What.
    pub name: Name,
    /// What is wrong with it.
    pub cause: String,
}

/// What [`Repo::verify`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Versions of files read.
    pub files: u64,
    /// Packets read that are kept as they came.
    pub packets: u64,
    /// Bytes read.
    pub bytes: u64,
    /// What is damaged.
    pub damaged: Vec<Damage>,
}

impl Repo {
    /// What the repository holds and has done.
    ///
    /// # Errors
    /// What the disk says.
    pub fn status(&self) -> Result<Status> {
        let inner = &self.inner;
        let mut status = Status {
            index_bytes: inner.index.bytes(&*inner.disk)?,
            free_bytes: inner.disk.free_bytes().at(Path::new("."))?,
            incoming: interrupted(self)?.len() as u64,
            log_bytes: inner.packets.log_bytes()?,
            damaged_answers: inner.damaged.load(Ordering::Relaxed),
            ..Status::default()
        };
        self.walk(&Name::new(), &mut |info| {
            status.files += 1;
            status.file_bytes += info.entry.size;
            Ok(())
        })?;
        self.walk_packets(&Name::new(), &mut |series| {
            status.series += 1;
            status.packets += series.packets;
            true
        })?;
        Ok(status)
    }

    /// Calls `visit` with each version of each file at or under `name`, in the order of names and versions.
    ///
    /// # Errors
    /// What the index says, or `visit`.
    pub fn walk(&self, name: &Name, visit: &mut dyn FnMut(&FileInfo) -> Result<()>) -> Result<()> {
        let tx = self.inner.index.read()?;
        let files = tx.open_table(FILES).map_err(failed)?;
        for row in files
            .range::<(&[u8], u64)>((name.value(), 0)..)
            .map_err(failed)?
        {
            let (key, value) = row.map_err(failed)?;
            let (found, version) = key.value();
            if !found.starts_with(name.value()) {
                break;
            }
            visit(&FileInfo {
                name: name_of(Bytes::copy_from_slice(found))?,
                version,
                entry: file_entry(value.value())?,
            })?;
        }
        Ok(())
    }

    /// Removes the folder `name` and all below it, as far as no files are in them; tells how many there were.
    ///
    /// # Errors
    /// [`RepoError::NotEmpty`] when there are files, else what the disk says.
    pub fn remove_folders(&self, name: &Name) -> Result<u64> {
        if self.list(name, None, 1)?.iter().any(|c| c.file.is_some()) {
            return Err(RepoError::NotEmpty(name.clone()));
        }
        let removed = self.inner.index.change(Kept::Durably, |tx| {
            let mut folders = tx.open_table(FOLDERS).map_err(failed)?;
            let from = name.value();
            let mut removed = 0;
            let mut count = |_: &[u8], _: u64| {
                removed += 1;
                false
            };
            match successor(from) {
                Some(to) => folders.retain_in::<&[u8], _>(from..&to[..], &mut count),
                None => folders.retain_in::<&[u8], _>(from.., &mut count),
            }
            .map_err(failed)?;
            Ok(removed)
        })?;
        self.inner.changed();
        Ok(removed)
    }

    /// Reads everything at or under `name` and compares it with what was put. `progress` is told bytes read since its
    /// last call, and ends the work by `false`.
    ///
    /// # Errors
    /// What the index says. What is damaged or can't be read is no error, but told in the report.
    pub fn verify(&self, name: &Name, progress: &mut dyn FnMut(u64) -> bool) -> Result<Report> {
        let mut versions = Vec::new();
        self.walk(name, &mut |info| {
            versions.push((info.name.clone(), info.version));
            Ok(())
        })?;
        let mut report = Report::default();
        for (name, version) in versions {
            let mut goes_on = true;
            let mut bytes = 0;
            let found = match self.inner.reader(&name, Some(version)) {
                // Removed since.
                Ok(None) => continue,
                Ok(Some(reader)) => reader.verify(&mut |n| {
                    bytes += n;
                    goes_on &= progress(n);
                    goes_on
                }),
                Err(error) => Err(error),
            };
            if !goes_on {
                return Ok(report);
            }
            report.files += 1;
            report.bytes += bytes;
            match found {
                Ok(()) => {}
                Err(error @ RepoError::Index(_)) => return Err(error),
                Err(RepoError::Damaged { name, cause }) => {
                    report.damaged.push(Damage { name, cause })
                }
                Err(error) => report.damaged.push(Damage {
                    name: name.append_version(version),
                    cause: error.to_string(),
                }),
            }
        }
        let mut series = Vec::new();
        self.inner.packets.walk(name, &mut |one| {
            series.push(one);
            Ok(true)
        })?;
        for one in series {
            let (mut goes_on, mut bytes) = (true, 0);
            let damaged = &mut report.damaged;
            report.packets += self.inner.verify_series(
                &one,
                &mut |n| {
                    bytes += n;
                    goes_on &= progress(n);
                    goes_on
                },
                &mut |name, cause| damaged.push(Damage { name, cause }),
            );
            report.bytes += bytes;
            if !goes_on {
                break;
            }
        }
        Ok(report)
    }

    /// Gives back the room of interrupted transfers and of what was removed; tells how many bytes that were.
    ///
    /// # Errors
    /// What the disk says.
    pub fn compact(&self) -> Result<u64> {
        let inner = &self.inner;
        let before = inner.disk.free_bytes().at(Path::new("."))?;
        let unreferenced = inner.index.sync_and_list_unreferenced()?;
        files::remove_unreferenced(&*inner.disk, &inner.index, &unreferenced)?;
        for content in inner.interrupted() {
            if inner.take(content) {
                inner.remove_incoming(content);
            }
        }
        for kept in self.take_kept() {
            kept.abandon(&inner.packets);
        }
        inner.index.bundles.compact(&*inner.index)?;
        inner.packets.compact()?;
        let after = inner.disk.free_bytes().at(Path::new("."))?;
        Ok(after.saturating_sub(before))
    }
}

/// Content ids in `incoming`.
fn interrupted(repo: &Repo) -> Result<BTreeSet<u64>> {
    let folder = incoming(0).0;
    let folder = folder.parent().unwrap_or(Path::new(""));
    let names = repo.inner.disk.list(folder).at(folder)?;
    Ok(names
        .iter()
        .filter_map(|name| u64::from_str_radix(name.strip_suffix(".m").unwrap_or(name), 16).ok())
        .collect())
}
