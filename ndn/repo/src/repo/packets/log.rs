//! The segment logs: files that are only appended to, reserved ahead, one written at a time.
//!
//! Appending never waits for the device. A log that is full is closed for writing, and listed with what must be made durable
//! before anything that a later log tells may count:
//! ```text
//!   written to ── full ──▶ unsynced ── synced, cut to its size ──▶ durable
//!       └──────── could not be written or synced ──▶ broken
//! ```

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::record::{self, Kind, record_len};
use crate::disk::{Disk, DiskFile};
use crate::error::{At, RepoError, Result};

/// Bytes collected before they are written.
const BUFFER_BYTES: usize = 1 << 20;
/// Room is reserved by steps of so many bytes.
const RESERVE_STEP: u64 = 64 << 20;

/// Where a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub log: u32,
    pub at: u64,
}

/// The end of the logs.
#[derive(Debug)]
pub(crate) struct Logs {
    /// Size at which a log is full.
    size: u64,
    next: u32,
    open: Option<OpenLog>,
    /// Logs that are full and not known to be on the disk, the oldest first.
    full: Vec<LogFile>,
    /// Logs whose names may not be on the disk.
    unnamed: BTreeSet<u32>,
    /// Logs whose last bytes may not have reached the disk.
    broken: HashSet<u32>,
    /// How many insertions that are not over began in which log.
    begun: BTreeMap<u32, usize>,
}

#[derive(Debug)]
struct OpenLog {
    number: u32,
    file: Arc<dyn DiskFile>,
    /// Bytes in the file.
    written: u64,
    reserved: u64,
    buffer: Vec<u8>,
}

/// A log whose bytes are all in its file.
#[derive(Debug, Clone)]
pub(crate) struct LogFile {
    pub number: u32,
    file: Arc<dyn DiskFile>,
    /// Where a log that is full ends: room reserved beyond is given back. `None` while it is written.
    end: Option<u64>,
}

impl LogFile {
    /// Makes it durable. Waits for the device: nobody may hold [`Logs`] meanwhile whom others wait for.
    pub fn sync(&self) -> io::Result<()> {
        if let Some(end) = self.end {
            self.file.set_size(end)?;
        }
        self.file.sync()
    }
}

/// What a commit makes durable.
#[derive(Debug, Default)]
pub(crate) struct Unsynced {
    /// Logs whose names are to be made durable, by syncing [`folder`].
    pub unnamed: Vec<u32>,
    /// Logs to be synced, the oldest first.
    pub files: Vec<LogFile>,
}

/// The file of a log.
pub(crate) fn path(log: u32) -> PathBuf {
    folder().join(format!("{log:08}.log"))
}

/// The folder of the logs.
pub(crate) fn folder() -> &'static Path {
    Path::new("packets")
}

/// The number of a log by its file's name.
pub(crate) fn number(file: &str) -> Option<u32> {
    file.strip_suffix(".log")?.parse().ok()
}

impl Logs {
    /// Logs of `size` bytes, of which the next gets the number `next`.
    pub fn new(size: u64, next: u32) -> Self {
        Self {
            size: size.clamp(1 << 16, 1 << 32),
            next,
            open: None,
            full: Vec::new(),
            unnamed: BTreeSet::new(),
            broken: HashSet::new(),
            begun: BTreeMap::new(),
        }
    }

    /// Appends a record and tells where it is. It is on the disk when all that [`Logs::unsynced`] gives is.
    pub fn append(&mut self, disk: &dyn Disk, kind: Kind, payload: &[u8]) -> Result<Place> {
        self.make_room(payload.len())?;
        if self.open.is_none() {
            self.open = Some(self.begin(disk)?);
        }
        let appended = match &mut self.open {
            Some(open) => open.append(kind, payload),
            None => Err(io::Error::other("no log is open")),
        };
        self.or_break(appended)
    }

    /// Ends the log being written if a record with so many bytes of payload does not fit into it.
    pub fn make_room(&mut self, payload: usize) -> Result<()> {
        let len = record_len(payload) as u64;
        let is_full = |open: &OpenLog| open.end() > 0 && open.end() + len > self.size;
        if !self.open.as_ref().is_some_and(is_full) {
            return Ok(());
        }
        self.end_open()
    }

    /// Logs that are full and not known to be on the disk.
    pub fn full(&self) -> Unsynced {
        let is_full = |number: &u32| self.full.iter().any(|log| log.number == *number);
        Unsynced {
            unnamed: self.unnamed.iter().copied().filter(is_full).collect(),
            files: self.full.clone(),
        }
    }

    /// Writes what is collected, and tells all that is not known to be on the disk.
    pub fn unsynced(&mut self) -> Result<Unsynced> {
        self.flush()?;
        let mut files = self.full.clone();
        files.extend(self.open.as_ref().map(|open| LogFile {
            number: open.number,
            file: open.file.clone(),
            end: None,
        }));
        Ok(Unsynced {
            unnamed: self.unnamed.iter().copied().collect(),
            files,
        })
    }

    /// This log is on the disk.
    pub fn synced(&mut self, synced: &LogFile) {
        if synced.end.is_some() {
            self.full.retain(|log| log.number != synced.number);
        }
    }

    /// The names of these logs are on the disk.
    pub fn named(&mut self, logs: &[u32]) {
        self.unnamed.retain(|log| !logs.contains(log));
    }

    fn begin(&mut self, disk: &dyn Disk) -> Result<OpenLog> {
        let number = self.next;
        let path = path(number);
        self.next += 1;
        let file = disk.create(&path).at(&path)?;
        self.unnamed.insert(number);
        Ok(OpenLog {
            number,
            file,
            written: 0,
            reserved: 0,
            buffer: Vec::new(),
        })
    }

    /// The log being written, if any.
    pub fn current(&self) -> Option<u32> {
        self.open.as_ref().map(|open| open.number)
    }

    /// The place after the last record.
    pub fn end(&self) -> Place {
        match &self.open {
            Some(open) => Place {
                log: open.number,
                at: open.end(),
            },
            None => Place {
                log: self.next,
                at: 0,
            },
        }
    }

    /// An insertion begins: tells the first log that its packets may be in.
    pub fn begin_insertion(&mut self) -> u32 {
        let log = self.end().log;
        self.go_on_with_insertion(log);
        log
    }

    /// An insertion that began in this log, before a restart, is not over.
    pub fn go_on_with_insertion(&mut self, log: u32) {
        *self.begun.entry(log).or_default() += 1;
    }

    /// An insertion that began in this log is over: the index tells of its packets, or nobody needs them.
    pub fn end_insertion(&mut self, log: u32) {
        if let Some(count) = self.begun.get_mut(&log) {
            *count -= 1;
            if *count == 0 {
                self.begun.remove(&log);
            }
        }
    }

    /// From this log on there may be packets that the index does not tell of yet.
    pub fn first_in_use(&self) -> u32 {
        let end = self.end().log;
        self.begun.keys().next().map_or(end, |log| end.min(*log))
    }

    /// Whether all that was appended to this log can be relied on.
    pub fn is_sound(&self, log: u32) -> bool {
        !self.broken.contains(&log)
    }

    /// Writes what is collected.
    pub fn flush(&mut self) -> Result<()> {
        let flushed = self.open.as_mut().map_or(Ok(()), OpenLog::flush);
        self.or_break(flushed)
    }

    /// A log could not be written or synced: what is in it and not synced before is lost, and it is not written any more.
    pub fn break_log(&mut self, log: u32) {
        self.broken.insert(log);
        self.full.retain(|full| full.number != log);
        self.unnamed.remove(&log);
        if self.current() == Some(log) {
            self.open = None;
        }
    }

    fn or_break<T>(&mut self, result: io::Result<T>) -> Result<T> {
        result.map_err(|error| {
            let path = self.current().map_or_else(PathBuf::new, path);
            if let Some(log) = self.current() {
                self.break_log(log);
            }
            RepoError::Io { path, error }
        })
    }

    /// Ends the log being written: the next record goes into another.
    pub fn end_open(&mut self) -> Result<()> {
        self.flush()?;
        if let Some(open) = self.open.take() {
            self.full.push(LogFile {
                number: open.number,
                file: open.file,
                end: Some(open.written),
            });
        }
        Ok(())
    }
}

impl OpenLog {
    fn end(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn append(&mut self, kind: Kind, payload: &[u8]) -> io::Result<Place> {
        let at = self.end();
        record::encode(&mut self.buffer, self.number, at, kind, payload);
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(Place {
            log: self.number,
            at,
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let end = self.end();
        if end > self.reserved {
            let reserved = end.next_multiple_of(RESERVE_STEP);
            // Where there is not so much room, there may still be enough.
            self.reserved = match self.file.reserve(self.reserved..reserved) {
                Ok(()) => reserved,
                Err(_) => self.file.reserve(self.reserved..end).map(|()| end)?,
            };
        }
        self.file.write_at(self.written, &self.buffer)?;
        self.file
            .begin_writeback(self.written, self.buffer.len() as u64);
        self.written = end;
        self.buffer.clear();
        Ok(())
    }
}
