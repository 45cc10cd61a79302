//! What a crash has left of files: moved to its place, kept so that its transfer can go on, or removed.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;

use ndn_packet::Name;

use super::hasher::Hasher;
use super::lane::Lane;
use super::manifest::{ENTRY_BYTES, Facts, SegmentEntry, is_draft};
use super::writer::{FileWriter, PutOptions, shape};
use crate::bundles::{self, BUNDLED};
use crate::disk::Disk;
use crate::error::{At, Result};
use crate::index::{FILES, FileEntry, Index, Kept, UNREFERENCED, failed, list_unreferenced};
use crate::layout::{SYNC_ALL_FROM, incoming, remove_both, settle, settled};
use crate::repo::Inner;

/// Entries of a manifest that are checked at once.
const ENTRIES_AT_ONCE: usize = 1024;

/// What was on its way when the power failed.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    /// Transfers that can go on.
    pub interrupted: HashSet<u64>,
    /// What is to be published as it was found: see [`FileWriter::keep`].
    pub drafts: Vec<u64>,
}

/// What lies in `incoming`.
enum Incoming {
    Settled,
    Interrupted,
    Draft,
    Nothing,
}

/// Puts `incoming` and the files that are to go in order.
pub(crate) fn recover(disk: &dyn Disk, index: &Index) -> Result<Recovered> {
    // Nothing was changed since the start: what the index says is durable.
    let unreferenced = {
        let tx = index.read()?;
        list_unreferenced(&tx.open_table(UNREFERENCED).map_err(failed)?)?
    };
    remove_unreferenced(disk, index, &unreferenced)?;
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
    let mut recovered = Recovered::default();
    for content in contents {
        match recover_one(disk, index, content)? {
            Incoming::Settled => {}
            Incoming::Interrupted => {
                recovered.interrupted.insert(content);
            }
            Incoming::Draft => recovered.drafts.push(content),
            Incoming::Nothing => remove_both(disk, &incoming(content)),
        }
    }
    Ok(recovered)
}

fn recover_one(disk: &dyn Disk, index: &Index, content: u64) -> Result<Incoming> {
    let Some((facts, is_draft)) = facts_of(disk, content) else {
        return Ok(Incoming::Nothing);
    };
    if is_published(index, &facts, content)? {
        settle(disk, content)?;
        return Ok(Incoming::Settled);
    }
    Ok(match facts.entry.size {
        // Where it is not whole, nobody was told that it is kept.
        _ if is_draft && disk.open(&incoming(content).0).is_ok() => Incoming::Draft,
        _ if is_draft => Incoming::Nothing,
        0 => Incoming::Nothing,
        // Its size is known: whoever puts it again can go on from here.
        _ => Incoming::Interrupted,
    })
}

/// Whose content this is, wherever its manifest lies; and whether it is a draft.
fn facts_of(disk: &dyn Disk, content: u64) -> Option<(Facts, bool)> {
    let file = [incoming(content).1, settled(content).1]
        .iter()
        .find_map(|path| disk.open(path).ok())?;
    let (facts, _) = Facts::read(&*file)?;
    Some((facts, is_draft(&*file)))
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

/// Removes files that no entry names any more. That must be durable: a crash must not bring back an entry whose files are
/// gone.
pub(crate) fn remove_unreferenced(
    disk: &dyn Disk,
    index: &Index,
    unreferenced: &[u64],
) -> Result<()> {
    if unreferenced.is_empty() {
        return Ok(());
    }
    let mut folders = BTreeSet::new();
    let bundled = {
        let tx = index.read()?;
        let bundled = tx.open_table(BUNDLED).map_err(failed)?;
        let mut found = HashSet::new();
        for content in unreferenced {
            if bundled.get(content).map_err(failed)?.is_some() {
                found.insert(*content);
            }
        }
        found
    };
    for content in unreferenced.iter().filter(|c| !bundled.contains(*c)) {
        // In the order in which somebody may be moving them in this moment.
        for paths in [incoming(*content), settled(*content)] {
            remove_both(disk, &paths);
            folders.extend(paths.0.parent().map(Path::to_owned));
        }
    }
    // They must be gone for good before nobody knows of them any more.
    if folders.len() < SYNC_ALL_FROM || disk.sync_all().is_err() {
        for folder in &folders {
            disk.sync_dir(folder).at(folder)?;
        }
    }
    // Where a crash undoes this, the next start finds nothing to remove.
    index.change(Kept::UntilCrash, |tx| {
        let mut table = tx.open_table(UNREFERENCED).map_err(failed)?;
        for content in unreferenced {
            table.remove(content).map_err(failed)?;
        }
        for content in &bundled {
            bundles::forget(tx, *content)?;
        }
        Ok(())
    })?;
    match bundled.is_empty() {
        true => Ok(()),
        false => index.bundles.sweep(index),
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
        Lane::new(hasher),
        good * whole,
    )))
}
