//! Bundles: files in which small versions lie one after the other, content and manifest each, so that a small version costs no
//! file of its own.
//!
//! ```text
//!   bundles/<n>   content, manifest │ content, manifest │ …        appended; nothing in it is written twice
//!   index         content id → bundle, place, lengths              whoever is not there has no place in a bundle
//! ```
//! A version is in a bundle before the index names it, and the bundle is synced before the index is. What the index names no
//! more is dead room: of a bundle with nothing else the file goes, others are emptied by [`Bundles::compact`] once less than
//! three quarters are needed.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use redb::{ReadableTable, TableDefinition, WriteTransaction};

use crate::disk::{Disk, DiskFile};
use crate::error::{At, RepoError, Result};
use crate::ids::now_us;
use crate::tables::{Kept, Tables, failed};

/// Content id → bundle, place in it, bytes of content, bytes of manifest.
pub(crate) const BUNDLED: TableDefinition<'_, u64, (u32, u32, u32, u32)> =
    TableDefinition::new("bundled");
/// Bundle → versions in it that are needed, and their bytes.
pub(crate) const BUNDLES: TableDefinition<'_, u32, (u64, u64)> = TableDefinition::new("bundles");

const FOLDER: &str = "bundles";
/// A bundle that is longer takes no more.
const FULL_BYTES: u64 = 64 << 20;
/// Versions that are moved by one change.
const MOVED_AT_ONCE: usize = 4096;

/// Where a version lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    bundle: u32,
    at: u32,
    content: u32,
    manifest: u32,
}

impl Place {
    fn row((bundle, at, content, manifest): (u32, u32, u32, u32)) -> Self {
        Self {
            bundle,
            at,
            content,
            manifest,
        }
    }

    fn to_row(self) -> (u32, u32, u32, u32) {
        (self.bundle, self.at, self.content, self.manifest)
    }

    fn len(self) -> u64 {
        u64::from(self.content) + u64::from(self.manifest)
    }
}

/// A version that is in a bundle, and about to be in the index. As long as it is held the bundle stays.
#[derive(Debug)]
pub(crate) struct Appended {
    pub place: Place,
    _held: Arc<()>,
}

/// The bundles of a repository.
#[derive(Debug)]
pub(crate) struct Bundles {
    disk: Arc<dyn Disk>,
    state: Mutex<State>,
    next_content: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// The bundle that grows.
    open: Option<Open>,
    /// Number of the next one.
    next: u32,
    /// Files to be synced.
    unsynced: BTreeMap<u32, Arc<dyn DiskFile>>,
    /// A bundle's name is to be synced.
    is_new: bool,
    /// Held by who appends, for each bundle.
    held: BTreeMap<u32, Arc<()>>,
}

#[derive(Debug)]
struct Open {
    number: u32,
    file: Arc<dyn DiskFile>,
    at: u64,
}

fn path(number: u32) -> PathBuf {
    Path::new(FOLDER).join(format!("{number:08x}"))
}

impl Bundles {
    pub fn new(disk: &Arc<dyn Disk>) -> Self {
        Self {
            disk: disk.clone(),
            state: Mutex::default(),
            next_content: AtomicU64::new(now_us()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds out what is there, and removes what nobody needs. Nobody may use the index yet.
    pub fn recover(&self, index: &dyn Tables) -> Result<()> {
        let folder = Path::new(FOLDER);
        let mut last = None;
        for name in self.disk.list(folder).at(folder)? {
            match u32::from_str_radix(&name, 16) {
                Ok(number) => last = last.max(Some(number)),
                Err(_) => self.disk.remove(&folder.join(&name)).at(folder)?,
            }
        }
        let tx = index.view()?;
        let bundled = tx.open_table(BUNDLED).map_err(failed)?;
        if let Some((content, _)) = bundled.last().map_err(failed)? {
            // Ids are told apart from all others by being the greatest of their kind.
            self.next_content
                .fetch_max(content.value().saturating_add(1), Ordering::Relaxed);
        }
        let bundles = tx.open_table(BUNDLES).map_err(failed)?;
        let known = bundles.last().map_err(failed)?;
        let known = known.map(|(number, _)| number.value());
        let mut state = self.state();
        state.next = last.max(known).map_or(0, |last| last.wrapping_add(1));
        drop(state);
        for name in self.disk.list(folder).at(folder)? {
            let Ok(number) = u32::from_str_radix(&name, 16) else {
                continue;
            };
            let needed = bundles.get(number).map_err(failed)?;
            if needed.is_none_or(|row| row.value().0 == 0) {
                self.remove(number);
            } else if Some(number) == last {
                let file = self.disk.open(&path(number)).at(&path(number))?;
                let at = file.size().at(&path(number))?;
                if at < FULL_BYTES {
                    // What is beyond the last version that the index names is dead room.
                    self.state().open = Some(Open { number, file, at });
                }
            }
        }
        Ok(())
    }

    /// An id for content that may get into a bundle.
    pub fn new_content(&self) -> u64 {
        self.next_content.fetch_add(1, Ordering::Relaxed)
    }

    /// Writes a version to the end of a bundle. It is durable by the next [`Bundles::sync`].
    pub fn append(&self, content: &[u8], manifest: &[u8]) -> io::Result<Appended> {
        let mut state = self.state();
        let state = &mut *state;
        let open = match &mut state.open {
            Some(open) if open.at < FULL_BYTES => open,
            _ => {
                let number = state.next;
                let file = self.disk.create(&path(number))?;
                (state.next, state.is_new) = (number.wrapping_add(1), true);
                state.open.insert(Open {
                    number,
                    file,
                    at: 0,
                })
            }
        };
        let bytes = [content, manifest].concat();
        let too_long = |_| io::Error::from(io::ErrorKind::FileTooLarge);
        let place = Place {
            bundle: open.number,
            at: u32::try_from(open.at).map_err(too_long)?,
            content: u32::try_from(content.len()).map_err(too_long)?,
            manifest: u32::try_from(manifest.len()).map_err(too_long)?,
        };
        open.file.write_at(open.at, &bytes)?;
        open.at += bytes.len() as u64;
        state.unsynced.insert(open.number, open.file.clone());
        let held = state.held.entry(open.number).or_default().clone();
        Ok(Appended { place, _held: held })
    }

    /// Makes durable what was appended before. One at a time: who holds a lock for it.
    pub fn sync(&self) -> Result<()> {
        let (unsynced, is_new) = {
            let mut state = self.state();
            let is_new = std::mem::take(&mut state.is_new);
            (std::mem::take(&mut state.unsynced), is_new)
        };
        let synced = unsynced
            .iter()
            .try_for_each(|(number, file)| file.sync().at(&path(*number)))
            .and_then(|()| match is_new {
                true => self.disk.sync_dir(Path::new(FOLDER)).at(Path::new(FOLDER)),
                false => Ok(()),
            });
        if synced.is_err() {
            let mut state = self.state();
            state.is_new |= is_new;
            for (number, file) in unsynced {
                state.unsynced.entry(number).or_insert(file);
            }
        }
        synced
    }

    /// Content and manifest of a version, as they are there.
    fn read(&self, place: Place) -> Result<(Bytes, Bytes)> {
        let path = path(place.bundle);
        let mut bytes = vec![0; place.len() as usize];
        self.disk
            .open(&path)
            .and_then(|file| file.read_at(u64::from(place.at), &mut bytes))
            .at(&path)?;
        let mut content = Bytes::from(bytes);
        let manifest = content.split_off(place.content as usize);
        Ok((content, manifest))
    }

    /// Content and manifest of what has this id; `None` where it is in no bundle.
    pub fn find(&self, index: &dyn Tables, content: u64) -> Result<Option<(Bytes, Bytes)>> {
        let mut place = None;
        loop {
            let tx = index.view()?;
            let bundled = tx.open_table(BUNDLED).map_err(failed)?;
            let row = bundled.get(content).map_err(failed)?;
            let Some(now) = row.map(|row| Place::row(row.value())) else {
                return Ok(None);
            };
            match self.read(now) {
                // It was moved in this moment.
                Err(_) if place != Some(now) => place = Some(now),
                other => return other.map(Some),
            }
        }
    }

    /// Removes bundles that nobody needs.
    pub fn sweep(&self, index: &dyn Tables) -> Result<()> {
        let empty: Vec<u32> = {
            let tx = index.view()?;
            let bundles = tx.open_table(BUNDLES).map_err(failed)?;
            let mut empty = Vec::new();
            for row in bundles.iter().map_err(failed)? {
                let (number, needed) = row.map_err(failed)?;
                if needed.value().0 == 0 && !self.is_busy(number.value()) {
                    empty.push(number.value());
                }
            }
            empty
        };
        if empty.is_empty() {
            return Ok(());
        }
        for number in &empty {
            self.remove(*number);
        }
        // Where a crash undoes this, the next start finds nothing to remove.
        index.alter(Kept::UntilCrash, &mut |tx| {
            let mut bundles = tx.open_table(BUNDLES).map_err(failed)?;
            for number in &empty {
                bundles.remove(number).map_err(failed)?;
            }
            Ok(())
        })
    }

    /// Whether something may be appended to it, or is and not in the index yet. Once that is not so it stays so.
    fn is_busy(&self, number: u32) -> bool {
        let mut state = self.state();
        let is_held = |held: &Arc<()>| Arc::strong_count(held) > 1;
        let busy = state
            .open
            .as_ref()
            .is_some_and(|open| open.number == number)
            || state.held.get(&number).is_some_and(is_held);
        if !busy {
            state.held.remove(&number);
        }
        busy
    }

    fn remove(&self, number: u32) {
        self.state().unsynced.remove(&number);
        if let Err(error) = self.disk.remove(&path(number))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(bundle = number, %error, "can't remove a bundle that is not needed");
        }
    }

    /// Moves what is needed of bundles that are mostly dead room, and removes those.
    pub fn compact(&self, index: &dyn Tables) -> Result<()> {
        for number in self.mostly_dead(index)? {
            if let Err(error) = self.empty(index, number) {
                // Nothing is lost by it. Others may need less room.
                tracing::warn!(bundle = number, %error, "can't give back the dead room of a bundle");
            }
        }
        self.sweep(index)
    }

    fn empty(&self, index: &dyn Tables, number: u32) -> Result<()> {
        while self.move_some(index, number)? {}
        Ok(())
    }

    /// Those of which little is needed come first.
    fn mostly_dead(&self, index: &dyn Tables) -> Result<Vec<u32>> {
        let tx = index.view()?;
        let bundles = tx.open_table(BUNDLES).map_err(failed)?;
        let mut dead = Vec::new();
        for row in bundles.iter().map_err(failed)? {
            let (number, needed) = row.map_err(failed)?;
            let number = number.value();
            let size = match self.disk.open(&path(number)).and_then(|file| file.size()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                size => size.at(&path(number))?,
            };
            if needed.value().1.saturating_mul(4) >= size.saturating_mul(3) {
                continue;
            }
            {
                let mut state = self.state();
                if state
                    .open
                    .as_ref()
                    .is_some_and(|open| open.number == number)
                {
                    state.open = None;
                }
            }
            if !self.is_busy(number) {
                dead.push((needed.value().1, number));
            }
        }
        dead.sort_unstable();
        Ok(dead.into_iter().map(|(_, number)| number).collect())
    }

    /// Tells whether there is more.
    fn move_some(&self, index: &dyn Tables, number: u32) -> Result<bool> {
        let mut found = Vec::new();
        {
            let tx = index.view()?;
            let bundled = tx.open_table(BUNDLED).map_err(failed)?;
            for row in bundled.iter().map_err(failed)? {
                let (content, place) = row.map_err(failed)?;
                let place = Place::row(place.value());
                if place.bundle == number {
                    found.push((content.value(), place));
                    if found.len() == MOVED_AT_ONCE {
                        break;
                    }
                }
            }
        }
        let mut moved = Vec::with_capacity(found.len());
        for (content, from) in &found {
            let (bytes, manifest) = self.read(*from)?;
            let to = self.append(&bytes, &manifest).at(&path(number))?;
            moved.push((*content, *from, to));
        }
        // Durably: the bundle that it was in goes then.
        index.alter(Kept::Durably, &mut |tx| {
            for (content, from, to) in &moved {
                let there = {
                    let bundled = tx.open_table(BUNDLED).map_err(failed)?;
                    let row = bundled.get(content).map_err(failed)?;
                    row.is_some_and(|row| Place::row(row.value()) == *from)
                };
                // Else it was removed meanwhile.
                if there {
                    forget(tx, *content)?;
                    note_all(tx, [(*content, to.place)].into_iter())?;
                }
            }
            Ok(())
        })?;
        Ok(found.len() == MOVED_AT_ONCE)
    }
}

/// The index names what is at these places from now on.
pub(crate) fn note_all(
    tx: &WriteTransaction,
    places: impl Iterator<Item = (u64, Place)>,
) -> Result<()> {
    let mut bundled = tx.open_table(BUNDLED).map_err(failed)?;
    let mut more: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for (content, place) in places {
        bundled.insert(content, place.to_row()).map_err(failed)?;
        let counted = more.entry(place.bundle).or_default();
        *counted = (counted.0 + 1, counted.1 + place.len());
    }
    for (bundle, more) in more {
        count(tx, bundle, |(versions, bytes)| {
            (versions + more.0, bytes + more.1)
        })?;
    }
    Ok(())
}

/// The index does not name it any more. Tells whether it was in a bundle.
pub(crate) fn forget(tx: &WriteTransaction, content: u64) -> Result<bool> {
    let mut bundled = tx.open_table(BUNDLED).map_err(failed)?;
    let row = bundled.remove(content).map_err(failed)?;
    let Some(place) = row.map(|row| Place::row(row.value())) else {
        return Ok(false);
    };
    count(tx, place.bundle, |(versions, bytes)| {
        (
            versions.saturating_sub(1),
            bytes.saturating_sub(place.len()),
        )
    })?;
    Ok(true)
}

fn count(
    tx: &WriteTransaction,
    bundle: u32,
    change: impl FnOnce((u64, u64)) -> (u64, u64),
) -> std::result::Result<(), RepoError> {
    let mut bundles = tx.open_table(BUNDLES).map_err(failed)?;
    let before = bundles.get(bundle).map_err(failed)?;
    let before = before.map_or((0, 0), |row| row.value());
    bundles.insert(bundle, change(before)).map_err(failed)?;
    Ok(())
}
