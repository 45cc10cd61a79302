//! What a crash has left of files: moved to its place, kept so that its transfer can go on, or removed.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use ndn_packet::Name;
use redb::ReadableTable;

use super::hasher::Hasher;
use super::manifest::{ENTRY_BYTES, Facts, SegmentEntry};
use super::writer::{FileWriter, PutOptions, incoming, settled, shape};
use crate::disk::Disk;
use crate::error::{At, Result};
use crate::index::{DOOMED, FILES, FileEntry, Index, Kept, failed};
use crate::inner::Inner;

/// From so many folders on, one sync of the whole file system is cheaper than one of each.
const SYNC_ALL_FROM: usize = 8;
/// Entries of a manifest that are checked at once.
const ENTRIES_AT_ONCE: usize = 1024;

/// Puts `incoming` and the files that are to go in order; gives the transfers that can go on.
pub(crate) fn recover(disk: &dyn Disk, index: &Index) -> Result<HashSet<u64>> {
    remove_doomed(disk, index)?;
    let folder = Path::new("incoming");
    let mut contents = BTreeSet::new();
    for name in disk.list(folder).at(folder)? {
        let id = name.strip_suffix(".m").unwrap_or(&name);
        match u64::from_str_radix(id, 16) {
            Ok(content) => {
                contents.insert(content);
            }
            Err(_) => disk.remove(&folder.join(&name)).at(folder)?,
        }
    }
    let mut interrupted = HashSet::new();
    for content in contents {
        if recover_one(disk, index, content)? {
            interrupted.insert(content);
        }
    }
    Ok(interrupted)
}

/// Whether it is a transfer that can go on.
fn recover_one(disk: &dyn Disk, index: &Index, content: u64) -> Result<bool> {
    let facts = facts_of(disk, content);
    match facts {
        Some(facts) if is_published(index, &facts, content)? => {
            settle(disk, content)?;
            Ok(false)
        }
        // Its size is known: whoever puts it again can go on from here.
        Some(facts) if facts.entry.size > 0 => Ok(true),
        _ => {
            remove_both(disk, &incoming(content));
            Ok(false)
        }
    }
}

/// Whose content this is, wherever its manifest lies.
fn facts_of(disk: &dyn Disk, content: u64) -> Option<Facts> {
    [incoming(content).1, settled(content).1]
        .iter()
        .find_map(|path| disk.open(path).ok())
        .and_then(|file| Facts::read(&*file))
        .map(|(facts, _)| facts)
}

fn is_published(index: &Index, facts: &Facts, content: u64) -> Result<bool> {
    let tx = index.read()?;
    let files = tx.open_table(FILES).map_err(failed)?;
    let found = files
        .get((facts.name.value(), facts.version))
        .map_err(failed)?
        .and_then(|row| FileEntry::decode(row.value()));
    Ok(found.is_some_and(|entry| entry.content == content))
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

/// Removes the files that no entry names any more.
pub(crate) fn remove_doomed(disk: &dyn Disk, index: &Index) -> Result<()> {
    let doomed: Vec<u64> = {
        let tx = index.read()?;
        let table = tx.open_table(DOOMED).map_err(failed)?;
        table
            .iter()
            .map_err(failed)?
            .map(|row| Ok(row.map_err(failed)?.0.value()))
            .collect::<Result<_>>()?
    };
    if doomed.is_empty() {
        return Ok(());
    }
    let mut folders = BTreeSet::new();
    for content in &doomed {
        for paths in [settled(*content), incoming(*content)] {
            remove_both(disk, &paths);
            folders.extend(paths.0.parent().map(Path::to_owned));
        }
    }
    // They must be gone for good before nobody knows of them any more.
    if folders.len() < SYNC_ALL_FROM {
        for folder in &folders {
            disk.sync_dir(folder).at(folder)?;
        }
    } else {
        disk.sync_all().at(Path::new("."))?;
    }
    index.change(Kept::Durably, |tx| {
        let mut table = tx.open_table(DOOMED).map_err(failed)?;
        for content in &doomed {
            table.remove(content).map_err(failed)?;
        }
        Ok(())
    })
}

/// Removes content and manifest; what is not there need not be removed.
pub(crate) fn remove_both(disk: &dyn Disk, paths: &(std::path::PathBuf, std::path::PathBuf)) {
    for path in [&paths.0, &paths.1] {
        if let Err(error) = disk.remove(path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), %error, "a file that is not needed stays");
        }
    }
}

/// The interrupted transfer that `name` with these options continues, up to its last good segment.
pub(crate) fn partial_upload(
    repo: &Arc<Inner>,
    name: &Name,
    options: &PutOptions,
) -> Result<Option<FileWriter>> {
    let (Some(size), Some(mtime_ns)) = (options.size, options.mtime_ns) else {
        return Ok(None);
    };
    for content in repo.interrupted() {
        if !repo.take(content) {
            continue; // Somebody goes on with it in this moment.
        }
        let found = continued(repo, content, name, size, mtime_ns, options);
        if !matches!(found, Ok(Some(_))) {
            repo.interrupt(content);
        }
        if let Some(writer) = found? {
            return Ok(Some(writer));
        }
    }
    Ok(None)
}

fn continued(
    repo: &Arc<Inner>,
    content: u64,
    name: &Name,
    size: u64,
    mtime_ns: u64,
    options: &PutOptions,
) -> Result<Option<FileWriter>> {
    let paths = incoming(content);
    let (Ok(bytes), Ok(manifest)) = (repo.disk.open(&paths.0), repo.disk.open(&paths.1)) else {
        return Ok(None);
    };
    let Some((facts, entries_at)) = Facts::read(&*manifest) else {
        return Ok(None);
    };
    let FileEntry {
        segment_bytes,
        freshness_ms,
        mode,
        ..
    } = facts.entry;
    let same = facts.name == *name
        && (facts.entry.size, facts.entry.mtime_ns) == (size, mtime_ns)
        && (segment_bytes, mode) == (options.segment_bytes, options.mode)
        && u128::from(freshness_ms) == options.freshness.as_millis()
        && options.version.is_none_or(|v| v == facts.version)
        && !is_published(&repo.index, &facts, content)?;
    if !same {
        return Ok(None);
    }
    let mut hasher = Hasher::new(shape(&facts), manifest.clone(), entries_at);
    // The last segment is written anew in any case: it finishes the manifest.
    let (last, mut good) = (facts.entry.last_segment(), 0);
    let whole = u64::from(segment_bytes);
    let mut place = vec![0; segment_bytes as usize];
    'entries: while good < last {
        let count = (last - good).min(ENTRIES_AT_ONCE as u64) as usize;
        let at = entries_at + good * ENTRY_BYTES as u64;
        let there = manifest.size().at(&paths.1)?.saturating_sub(at) as usize / ENTRY_BYTES;
        let mut entries = vec![0; count.min(there) * ENTRY_BYTES];
        manifest.read_at(at, &mut entries).at(&paths.1)?;
        for entry in entries.as_chunks::<ENTRY_BYTES>().0 {
            let entry = SegmentEntry::decode(entry);
            if bytes.read_at(good * whole, &mut place).is_err() || !entry.holds(&place) {
                break 'entries;
            }
            hasher.skip(&entry);
            good += 1;
        }
        if there < count {
            break;
        }
    }
    Ok(Some(FileWriter::continued(
        repo.clone(),
        facts,
        Some(size),
        bytes,
        manifest,
        hasher,
        good * whole,
    )))
}
