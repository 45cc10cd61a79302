//! Insertions that were not over when the repository ended, and go on.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use ndn_packet::Data;

use super::PacketStore;
use super::insert::Insertion;
use super::log::{Place, folder};
use super::part_file::{HEADER, MAGIC, PartFile, SUFFIX, remove};
use super::record::Key;
use super::series::{ENTRY, Entry, Series};
use crate::disk::{Disk, DiskFile};
use crate::error::{At, Result};
use crate::repo::Repo;

/// An insertion that was not over when the repository ended.
#[derive(Debug)]
pub(crate) struct KeptInsertion {
    key: Key,
    /// Whose it is and what was asked for, as whoever began it has written it.
    pub tag: Vec<u8>,
    began_in: u32,
    part: PartFile,
}

impl KeptInsertion {
    /// All that lie on the disk; what is none is removed.
    pub fn read_all(disk: &dyn Disk) -> Result<Vec<Self>> {
        let names = disk.list(folder()).at(folder())?;
        let mut found = Vec::new();
        for name in names.iter().filter(|name| name.ends_with(SUFFIX)) {
            let path = folder().join(name);
            let file = disk.open(&path).at(&path)?;
            match Self::read(path.clone(), file) {
                Some(kept) => found.push(kept),
                None => remove(disk, &path),
            }
        }
        Ok(found)
    }

    fn read(path: PathBuf, file: Arc<dyn DiskFile>) -> Option<Self> {
        let mut magic = [0; MAGIC.len()];
        file.read_at(0, &mut magic).ok()?;
        if magic != *MAGIC {
            return None;
        }
        let at = MAGIC.len() as u64;
        let mut part = PartFile { path, file, at };
        let payload = part.next()?;
        part.at += HEADER + payload.len() as u64;
        let (began_in, mut rest) = payload.split_first_chunk()?;
        let key = Key::decode(&mut rest)?;
        Some(Self {
            key,
            tag: rest.to_vec(),
            began_in: u32::from_le_bytes(*began_in),
            part,
        })
    }

    /// The first log that its packets may be in.
    pub fn began_in(&self) -> u32 {
        self.began_in
    }

    /// Reads and checks what has come, and gives the insertion that goes on from there; and whether its last packet says
    /// that it is the last of all.
    ///
    /// # Errors
    /// What the disk says when it is written to.
    pub fn resume(self, repo: &Repo) -> Result<(Insertion, bool)> {
        let inner = &repo.inner;
        let Self {
            key,
            began_in,
            mut part,
            ..
        } = self;
        let series = Series::new(key.clone(), Vec::new());
        let mut insertion = Insertion::resumed(inner.clone(), key, began_in);
        let mut is_final = false;
        while let Some(payload) = part.next() {
            let next = insertion.next_segment();
            let Some(told) = Told::read(&inner.packets, &series, &payload, next) else {
                break;
            };
            for (segment, entry) in (told.first..).zip(told.entries) {
                let place = Place {
                    log: told.log,
                    at: u64::from(entry.at),
                };
                insertion.enter(segment, place, entry.len)?;
            }
            is_final = told.is_final;
            part.at += HEADER + payload.len() as u64;
        }
        insertion.told_by(part);
        Ok((insertion, is_final))
    }

    /// Nobody goes on with it.
    pub fn abandon(self, store: &PacketStore) {
        store.end_insertion(self.began_in);
        self.part.remove(&*store.disk);
    }
}

/// What a record tells of, and is there.
struct Told {
    first: u64,
    log: u32,
    entries: Vec<Entry>,
    /// Whether the last packet says that it is the last of all.
    is_final: bool,
}

impl Told {
    /// Reads and checks the packets, which begin at segment `next` or later; `None` where one is not what came.
    fn read(store: &PacketStore, series: &Series, payload: &[u8], next: u64) -> Option<Self> {
        let (first, rest) = payload.split_first_chunk()?;
        let (log, entries) = rest.split_first_chunk()?;
        let (entries, []) = entries.as_chunks::<{ ENTRY as usize }>() else {
            return None;
        };
        let mut told = Self {
            first: u64::from_le_bytes(*first),
            log: u32::from_le_bytes(*log),
            entries: entries.iter().map(Entry::decode).collect(),
            is_final: false,
        };
        if told.first < next {
            return None;
        }
        for (segment, entry) in (told.first..).zip(&told.entries) {
            let wire = series.read(store, told.log, *entry, segment).ok()?;
            told.is_final = Data::parse(wire).ok()?.is_final_block();
        }
        Some(told)
    }
}

impl Repo {
    /// Insertions that were not over when the repository ended last. Whoever asks first has them.
    pub(crate) fn take_kept(&self) -> Vec<KeptInsertion> {
        let kept = &self.inner.packets.kept;
        std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
