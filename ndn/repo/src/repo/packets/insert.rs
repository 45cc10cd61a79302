//! Packets on their way into the repository: invisible until the insertion is committed, all of them or none.

use std::sync::{Arc, PoisonError};

use ndn_packet::{Data, MAX_JUMBO_PACKET, NameRef};

use super::extent::{Extent, MAX_COUNT};
use super::log::Place;
use super::part_file::PartFile;
use super::record::{Change, Key, Kind, record_len};
use super::series::Entry;
use crate::error::{RepoError, Result};
use crate::repo::Inner;

/// Packets of one key being inserted; see [`crate::Repo::insert`]. Dropped before [`Insertion::commit`], it leaves nothing
/// but room that `compact` gives back, and what [`Insertion::keep`] has written down of it.
pub struct Insertion {
    repo: Arc<Inner>,
    key: Key,
    done: Vec<Extent>,
    run: Option<Run>,
    packets: u64,
    /// The least segment that may come.
    next: u64,
    /// The log in which it began: that one and those after it stay until it is over.
    began_in: u32,
    /// Tells after a restart what has come.
    part: Option<PartFile>,
    /// Bytes of packets that it does not tell of yet.
    untold_bytes: u64,
}

/// Consecutive segments in one log.
struct Run {
    first: u64,
    log: u32,
    bytes: u64,
    entries: Vec<Entry>,
    /// How many of the entries the part file tells of.
    told: usize,
}

/// After so many bytes it is written down what has come.
const TELL_EVERY: u64 = 1 << 20;

impl Insertion {
    pub(crate) fn new(repo: Arc<Inner>, key: Key) -> Self {
        let began_in = repo
            .packets
            .logs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .begin_insertion();
        Self::resumed(repo, key, began_in)
    }

    /// One that began in this log before; that is known there.
    pub(super) fn resumed(repo: Arc<Inner>, key: Key, began_in: u32) -> Self {
        Self {
            repo,
            key,
            done: Vec::new(),
            run: None,
            packets: 0,
            next: 0,
            began_in,
            part: None,
            untold_bytes: 0,
        }
    }

    /// What has come is written down from here on, so that it can be gone on with after a restart: see
    /// [`crate::packets::KeptInsertion`]. `tag` tells whose it is.
    pub(crate) fn keep(&mut self, tag: &[u8]) {
        let disk = &*self.repo.disk;
        match PartFile::create(disk, &self.key, self.began_in, tag) {
            Ok(part) => self.part = Some(part),
            Err(error) => tracing::warn!(%error, "insertion can't be resumed after a restart"),
        }
    }

    /// All that has come is told there.
    pub(super) fn told_by(&mut self, part: PartFile) {
        if let Some(run) = &mut self.run {
            run.told = run.entries.len();
        }
        self.untold_bytes = 0;
        self.part = Some(part);
    }

    /// Nobody goes on with it.
    pub(crate) fn abandon(mut self) {
        self.forget();
    }

    fn forget(&mut self) {
        if let Some(part) = self.part.take() {
            part.remove(&*self.repo.disk);
        }
    }

    /// Whether a packet of this name may come.
    pub(crate) fn is_for(&self, name: NameRef<'_>) -> bool {
        match self.key.segmented {
            true => self.key.name == name.parent(),
            false => self.key.name == name,
        }
    }

    /// Packets taken so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// The least segment that may come next.
    pub(crate) fn next_segment(&self) -> u64 {
        self.next
    }

    /// Bytes of packets taken so far, as they lie in the logs.
    pub(crate) fn bytes(&self) -> u64 {
        let done: u64 = self.done.iter().map(|extent| extent.bytes).sum();
        done + self.run.as_ref().map_or(0, |run| run.bytes)
    }

    /// Takes a packet, bit for bit. Segments come in increasing order; gaps are allowed, and take some room in the index.
    ///
    /// # Errors
    /// [`RepoError::Setting`] for a packet of another series, an earlier segment, the greatest there is, or above
    /// [`MAX_JUMBO_PACKET`] bytes, else what the disk says.
    pub fn push(&mut self, data: &Data) -> Result<()> {
        let segment = self.segment_of(data)?;
        if data.wire().len() > MAX_JUMBO_PACKET {
            let text = format!(
                "{}: a packet of {} bytes, above {MAX_JUMBO_PACKET}",
                data.name(),
                data.wire().len()
            );
            return Err(RepoError::Setting(text));
        }
        let place = {
            let store = &self.repo.packets;
            let mut logs = store.logs.lock().unwrap_or_else(PoisonError::into_inner);
            logs.append(&*store.disk, Kind::Packet, data.wire())?
        };
        self.enter(segment, place, data.wire().len() as u32)?;
        if self.untold_bytes >= TELL_EVERY {
            self.tell()?;
        }
        Ok(())
    }

    /// A packet of this length is there.
    pub(super) fn enter(&mut self, segment: u64, place: Place, len: u32) -> Result<()> {
        let goes_on = self.run.as_ref().is_some_and(|run| {
            run.log == place.log
                && run.first + run.entries.len() as u64 == segment
                && (run.entries.len() as u64) < MAX_COUNT
        });
        if !goes_on {
            self.end_run()?;
        }
        let run = self.run.get_or_insert_with(|| Run {
            first: segment,
            log: place.log,
            bytes: 0,
            entries: Vec::new(),
            told: 0,
        });
        let bytes = record_len(len as usize) as u64;
        run.bytes += bytes;
        run.entries.push(Entry {
            // A log has at most 4 GiB.
            at: place.at as u32,
            len,
        });
        self.untold_bytes += bytes;
        self.packets += 1;
        self.next = segment.saturating_add(1);
        Ok(())
    }

    fn segment_of(&self, data: &Data) -> Result<u64> {
        let name = data.name();
        let segment = match self.key.segmented {
            false => (self.key.name == name && self.packets == 0).then_some(0),
            true => name
                .last()
                .and_then(|c| c.as_segment())
                // Extents tell the segment after their last.
                .filter(|n| *n >= self.next && *n < u64::MAX && self.key.name == name.parent()),
        };
        segment.ok_or_else(|| {
            RepoError::Setting(format!(
                "packet {name}: does not come next under {}; insert it by itself",
                self.key.name
            ))
        })
    }

    /// Writes down what has come.
    fn tell(&mut self) -> Result<()> {
        let (Some(part), Some(run)) = (&mut self.part, &mut self.run) else {
            return Ok(());
        };
        if run.told == run.entries.len() {
            return Ok(());
        }
        // What is told of must be in the log's file.
        let mut logs = self
            .repo
            .packets
            .logs
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        logs.flush()?;
        drop(logs);
        let first = run.first + run.told as u64;
        let told = part.tell(first, run.log, &run.entries[run.told..]);
        run.told = run.entries.len();
        self.untold_bytes = 0;
        if let Err(error) = told {
            tracing::warn!(%error, "insertion can't be resumed after a restart");
            self.forget();
        }
        Ok(())
    }

    fn end_run(&mut self) -> Result<()> {
        self.tell()?;
        let Some(run) = self.run.take() else {
            return Ok(());
        };
        let extent = self
            .repo
            .packets
            .append_table(run.first, run.log, run.bytes, &run.entries)?;
        self.done.push(extent);
        Ok(())
    }

    /// Makes the packets durable and visible, all at once. Tells how many there are.
    ///
    /// # Errors
    /// What the disk says; none of them is there then.
    pub fn commit(self) -> Result<u64> {
        let committed = Self::commit_all(vec![self]).pop();
        committed.unwrap_or(Ok(0))
    }

    /// As [`Insertion::commit`], of several of one repository that wait for the disk once: each is kept or fails by itself.
    pub(crate) fn commit_all(mut insertions: Vec<Self>) -> Vec<Result<u64>> {
        let mut results: Vec<Result<u64>> = Vec::with_capacity(insertions.len());
        let (mut changes, mut places) = (Vec::new(), Vec::new());
        for (at, insertion) in insertions.iter_mut().enumerate() {
            let ended = insertion.end_run().map(|()| 0);
            if ended.is_ok() && !insertion.done.is_empty() {
                let extents = std::mem::take(&mut insertion.done);
                changes.push(Change::Put(insertion.key.clone(), extents));
                places.push(at);
            }
            results.push(ended);
        }
        if let Some(repo) = insertions.first().map(|insertion| insertion.repo.clone()) {
            let moves = repo.packets.moves.read();
            let _moves = moves.unwrap_or_else(PoisonError::into_inner);
            let committed = repo.packets.commit_all(changes);
            for (at, result) in places.into_iter().zip(committed) {
                results[at] = result;
            }
        }
        for insertion in &mut insertions {
            insertion.forget();
        }
        results
    }
}

impl Drop for Insertion {
    fn drop(&mut self) {
        // The repository ends before it is over.
        if let Err(error) = self.tell() {
            tracing::warn!(%error, "insertion can be resumed after a restart only in part");
        }
        self.repo.packets.end_insertion(self.began_in);
    }
}
