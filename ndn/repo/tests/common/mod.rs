//! A disk in memory that can fail at any moment, and lose what was not synced by then.

#![allow(dead_code)] // each test file uses its part

pub mod commands;
pub mod large;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use ndn_packet::{Data, Interest, Name, SigningKey};
use ndn_repo::disk::{Disk, DiskFile};
use ndn_repo::{Repo, RepoOptions};

/// More than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The disk. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
    hang: Arc<Hang>,
}

/// A device that takes its time: syncs wait until it goes on.
#[derive(Debug, Default)]
struct Hang {
    /// Whether it hangs, and how many syncs wait.
    state: Mutex<(bool, usize)>,
    changed: Condvar,
}

impl Hang {
    fn pass(&self) {
        let mut state = self.state.lock().expect("no test panics while it holds it");
        state.1 += 1;
        self.changed.notify_all();
        while state.0 {
            state = self.changed.wait(state).expect("as above");
        }
        state.1 -= 1;
    }
}

#[derive(Debug, Default)]
struct State {
    inodes: HashMap<u64, Inode>,
    folders: BTreeSet<PathBuf>,
    names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    pending_names: Vec<NameChange>,
    next_inode: u64,
    changes: u64,
    syncs: u64,
    at_rename: Option<Meanwhile>,
    at_open: Option<Meanwhile>,
    at_cut: Option<Meanwhile>,
    fails_at: Option<u64>,
    loses_sync: bool,
    refuses_sync_all: bool,
    capacity: Option<u64>,
    hides_capacity: bool,
    bad: Vec<u64>,
    breaks_in_part: bool,
    refuses_cuts: bool,
    refuses_streams: bool,
    keeps_reserved: bool,
}

#[derive(Debug, Default, Clone)]
struct Inode {
    bytes: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
    /// Room beyond its bytes is kept up to here.
    reserved: u64,
}

impl Inode {
    fn room(&self) -> u64 {
        self.reserved.max(self.bytes.len() as u64)
    }
}

#[derive(Debug, Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Size(u64),
}

#[derive(Debug, Clone)]
enum NameChange {
    Add(PathBuf, u64),
    Remove(PathBuf),
    Move(PathBuf, PathBuf),
}

/// What somebody else does.
struct Meanwhile(Box<dyn FnOnce() + Send>);

impl fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meanwhile")
    }
}

/// Numbers without order.
pub struct Rng(pub u64);

impl Rng {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % n
    }
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Change::Write(at, part) => {
                let end = *at as usize + part.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[*at as usize..end].copy_from_slice(part);
            }
            Change::Size(size) => bytes.resize(*size as usize, 0),
        }
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<PathBuf, u64>) {
        match self {
            NameChange::Add(path, inode) => {
                names.insert(path.clone(), *inode);
            }
            NameChange::Remove(path) => {
                names.remove(path);
            }
            NameChange::Move(from, to) => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
        }
    }

    fn is_in(&self, folder: &Path) -> bool {
        match self {
            NameChange::Add(path, _) | NameChange::Remove(path) => path.parent() == Some(folder),
            NameChange::Move(from, to) => {
                from.parent() == Some(folder) || to.parent() == Some(folder)
            }
        }
    }
}

impl State {
    fn change(&mut self) -> io::Result<()> {
        self.changes += 1;
        self.alive()
    }

    fn alive(&self) -> io::Result<()> {
        match self.fails_at {
            Some(at) if self.changes > at => Err(io::Error::other("the power is off")),
            _ => Ok(()),
        }
    }

    fn inode(&self, path: &Path) -> io::Result<u64> {
        self.names
            .get(path)
            .copied()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn used(&self) -> u64 {
        self.inodes.values().map(Inode::room).sum()
    }

    fn rename(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.pending_names.push(change);
    }

    fn room(&self, more: u64) -> io::Result<()> {
        match self.capacity {
            Some(capacity) if self.used() + more > capacity => {
                Err(io::ErrorKind::StorageFull.into())
            }
            _ => Ok(()),
        }
    }
}

impl SimDisk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test panics while it holds it")
    }

    /// The power fails at this change, counted from the first.
    pub fn fail_at(&self, change: u64) {
        self.state().fails_at = Some(change);
    }

    /// From now on syncs hang, until they do not.
    pub fn hang(&self, hangs: bool) {
        self.hang.state.lock().expect("as above").0 = hangs;
        self.hang.changed.notify_all();
    }

    /// Waits until a sync hangs; panics if none does for a long time.
    pub fn until_a_sync_hangs(&self) {
        let state = self.hang.state.lock().expect("as above");
        let (state, _) = self
            .hang
            .changed
            .wait_timeout_while(state, PATIENCE, |state| state.1 == 0)
            .expect("as above");
        assert!(state.1 > 0, "nothing is synced");
    }

    /// Changes made so far.
    pub fn changes(&self) -> u64 {
        self.state().changes
    }

    /// Files synced so far, one by one.
    pub fn syncs(&self) -> u64 {
        self.state().syncs
    }

    /// Somebody else does this when a file is renamed next, before it is.
    pub fn at_rename(&self, meanwhile: impl FnOnce() + Send + 'static) {
        self.state().at_rename = Some(Meanwhile(Box::new(meanwhile)));
    }

    /// Somebody else does this when a file is opened next, before it is.
    pub fn at_open(&self, meanwhile: impl FnOnce() + Send + 'static) {
        self.state().at_open = Some(Meanwhile(Box::new(meanwhile)));
    }

    /// Somebody else does this when a file is cut or lengthened next, as soon as it is.
    pub fn at_cut(&self, meanwhile: impl FnOnce() + Send + 'static) {
        self.state().at_cut = Some(Meanwhile(Box::new(meanwhile)));
    }

    /// Nobody does anything any more; tells whether somebody was still to do something.
    pub fn forget_rename(&self) -> bool {
        let left = self.state().at_rename.take();
        left.is_some()
    }

    /// The next sync of a file fails, and what it was to make durable never is; the system takes it for written.
    pub fn lose_sync(&self) {
        self.state().loses_sync = true;
    }

    /// From now on no sync of all files goes well: one of somebody else's is lost.
    pub fn refuse_sync_all(&self) {
        self.state().refuses_sync_all = true;
    }

    /// From now on no more bytes than this fit.
    pub fn set_capacity(&self, bytes: u64) {
        self.state().capacity = Some(bytes);
    }

    /// From now on no more bytes than this fit, which is not told of before: a quota.
    pub fn set_quota(&self, bytes: u64) {
        self.set_capacity(bytes);
        self.state().hides_capacity = true;
    }

    /// From now on what is reserved is kept for whom it was reserved; else it is only seen to be there.
    pub fn keep_reserved(&self) {
        self.state().keeps_reserved = true;
    }

    /// No file can be written at this place any more.
    pub fn break_at(&self, offset: u64) {
        self.state().bad.push(offset);
    }

    /// The next write fails when half of it is written.
    pub fn break_in_part(&self) {
        self.state().breaks_in_part = true;
    }

    /// Every place can be written again.
    pub fn mend(&self) {
        self.state().bad.clear();
    }

    /// Whether no file can be cut or lengthened.
    pub fn refuse_cuts(&self, refuses: bool) {
        self.state().refuses_cuts = refuses;
    }

    /// Whether no room can be reserved for streams, for another reason than that there is none.
    pub fn refuse_streams(&self, refuses: bool) {
        self.state().refuses_streams = refuses;
    }

    /// Bytes of all files.
    pub fn used(&self) -> u64 {
        self.state().used()
    }

    /// The names of all files.
    pub fn files(&self) -> Vec<PathBuf> {
        self.state().names.keys().cloned().collect()
    }

    /// Flips a bit of a file, as a failing disk does.
    pub fn flip(&self, path: &Path, bit: u64) {
        let mut state = self.state();
        let inode = state.inode(path).expect("a file");
        let bytes = &mut state.inodes.get_mut(&inode).expect("an inode").bytes;
        bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
    }

    /// The disk as it is found after the power came back: of what was not synced, anything may be there or not, whole or
    /// torn.
    pub fn after_crash(&self, seed: u64) -> SimDisk {
        let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let state = self.state();
        let mut names = state.durable_names.clone();
        for change in &state.pending_names {
            if rng.below(2) == 0 {
                change.apply(&mut names);
            }
        }
        let mut inodes = HashMap::new();
        for (number, inode) in &state.inodes {
            let mut bytes = inode.durable.clone();
            for change in &inode.pending {
                match (rng.below(3), change) {
                    (0, _) => {}
                    (1, Change::Write(at, part)) => {
                        // Sectors are written whole.
                        let sectors = (*at + part.len() as u64) / 512 - *at / 512;
                        let end = (*at / 512 + rng.below(sectors + 1)) * 512;
                        let torn = end.saturating_sub(*at).min(part.len() as u64) as usize;
                        Change::Write(*at, part[..torn].to_vec()).apply(&mut bytes);
                    }
                    _ => change.apply(&mut bytes),
                }
            }
            inodes.insert(
                *number,
                Inode {
                    durable: bytes.clone(),
                    bytes,
                    pending: Vec::new(),
                    reserved: 0,
                },
            );
        }
        SimDisk {
            hang: Arc::default(),
            state: Arc::new(Mutex::new(State {
                inodes,
                folders: state.folders.clone(),
                durable_names: names.clone(),
                names,
                next_inode: state.next_inode,
                ..State::default()
            })),
        }
    }
}

impl Disk for SimDisk {
    fn make_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.alive()?;
        state.folders.insert(path.to_owned());
        Ok(())
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state();
        state.change()?;
        if state.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = state.next_inode;
        state.next_inode += 1;
        state.inodes.insert(inode, Inode::default());
        state.rename(NameChange::Add(path.to_owned(), inode));
        Ok(Arc::new(SimFile {
            disk: self.clone(),
            inode,
        }))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let meanwhile = self.state().at_open.take();
        if let Some(Meanwhile(act)) = meanwhile {
            act();
        }
        let state = self.state();
        state.alive()?;
        let inode = state.inode(path)?;
        Ok(Arc::new(SimFile {
            disk: self.clone(),
            inode,
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let meanwhile = self.state().at_rename.take();
        if let Some(Meanwhile(act)) = meanwhile {
            act();
        }
        let mut state = self.state();
        state.change()?;
        state.inode(from)?;
        state.rename(NameChange::Move(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        let inode = state.inode(from)?;
        state.rename(NameChange::Add(to.to_owned(), inode));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        state.inode(path)?;
        state.rename(NameChange::Remove(path.to_owned()));
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        state.alive()?;
        if !state.folders.contains(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(state
            .names
            .keys()
            .filter(|p| p.parent() == Some(path))
            .filter_map(|p| Some(p.file_name()?.to_str()?.to_owned()))
            .collect())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.hang.pass();
        let mut state = self.state();
        state.change()?;
        let pending = std::mem::take(&mut state.pending_names);
        let (done, rest) = pending.into_iter().partition(|c| c.is_in(path));
        let _: &Vec<NameChange> = &done;
        for change in &done {
            change.apply(&mut state.durable_names);
        }
        state.pending_names = rest;
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.hang.pass();
        let mut state = self.state();
        state.change()?;
        if state.refuses_sync_all {
            return Err(io::Error::other("somebody else's file is lost"));
        }
        state.durable_names = state.names.clone();
        state.pending_names.clear();
        for inode in state.inodes.values_mut() {
            inode.durable = inode.bytes.clone();
            inode.pending.clear();
        }
        Ok(())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let state = self.state();
        Ok(state
            .capacity
            .filter(|_| !state.hides_capacity)
            .unwrap_or(1 << 40)
            .saturating_sub(state.used()))
    }
}

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    inode: u64,
}

impl SimFile {
    fn with<T>(&self, change: bool, f: impl FnOnce(&mut Inode) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.disk.state();
        if change {
            state.change()?;
        }
        state.alive()?;
        let inode = state.inodes.get_mut(&self.inode).expect("an inode");
        f(inode)
    }

    fn room_for(&self, end: u64) -> io::Result<()> {
        let more = end.saturating_sub(self.disk.state().inodes[&self.inode].room());
        self.disk.state().room(more)
    }

    fn resize(&self, size: u64) -> io::Result<()> {
        self.room_for(size)?;
        self.with(true, |inode| {
            if size <= inode.bytes.len() as u64 {
                inode.reserved = 0;
            }
            let change = Change::Size(size);
            change.apply(&mut inode.bytes);
            inode.pending.push(change);
            Ok(())
        })
    }
}

impl DiskFile for SimFile {
    fn size(&self) -> io::Result<u64> {
        self.with(false, |inode| Ok(inode.bytes.len() as u64))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.with(false, |inode| {
            let start = usize::try_from(offset).expect("a small file");
            match inode.bytes.get(start..start + buffer.len()) {
                Some(bytes) => {
                    buffer.copy_from_slice(bytes);
                    Ok(())
                }
                None => Err(io::ErrorKind::UnexpectedEof.into()),
            }
        })
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.room_for(offset + bytes.len() as u64)?;
        if std::mem::take(&mut self.disk.state().breaks_in_part) {
            self.write_at(offset, &bytes[..bytes.len() / 2])?;
            return Err(io::Error::other("a bad sector"));
        }
        let written = offset..offset + bytes.len() as u64;
        if self
            .disk
            .state()
            .bad
            .iter()
            .any(|bad| written.contains(bad))
        {
            return Err(io::Error::other("a bad sector"));
        }
        self.with(true, |inode| {
            let change = Change::Write(offset, bytes.to_vec());
            change.apply(&mut inode.bytes);
            inode.pending.push(change);
            Ok(())
        })
    }

    fn write_some_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let state = self.disk.state();
        let room = state.capacity.unwrap_or(u64::MAX) - state.used();
        let end = state.inodes[&self.inode].room().saturating_add(room);
        drop(state);
        let fits = end.saturating_sub(offset).min(bytes.len() as u64) as usize;
        match fits {
            0 => self.write_at(offset, bytes).map(|()| bytes.len()),
            n => self.write_at(offset, &bytes[..n]).map(|()| n),
        }
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        if self.disk.state().refuses_cuts {
            return Err(io::Error::other("it can't be cut"));
        }
        let resized = self.resize(size);
        let meanwhile = self.disk.state().at_cut.take();
        if let Some(Meanwhile(act)) = meanwhile {
            act();
        }
        resized
    }

    fn reserve(&self, bytes: Range<u64>) -> io::Result<()> {
        let found = self.room_for(bytes.end);
        let mut state = self.disk.state();
        state.alive()?;
        let to = match found {
            Ok(()) => bytes.end,
            // As much as there is is taken, as by most file systems.
            Err(_) => {
                let left = state.capacity.unwrap_or(0).saturating_sub(state.used());
                state.inodes[&self.inode].room() + left
            }
        };
        if state.keeps_reserved {
            let inode = state.inodes.get_mut(&self.inode).expect("an inode");
            inode.reserved = inode.reserved.max(to);
        }
        found
    }

    fn begin_stream(&self, bytes: Range<u64>) -> io::Result<bool> {
        self.reserve(bytes.clone())?;
        if bytes.end > self.size()? {
            self.resize(bytes.end)?;
        }
        if self.disk.state().refuses_streams {
            return Err(io::Error::other("it can't be reserved"));
        }
        Ok(true)
    }

    fn end_stream(&self) {}

    fn begin_writeback(&self, _offset: u64, _len: u64) {}

    fn sync(&self) -> io::Result<()> {
        self.disk.hang.pass();
        self.disk.state().syncs += 1;
        let loses = std::mem::take(&mut self.disk.state().loses_sync);
        self.with(true, |inode| {
            if loses {
                inode.pending.clear();
                return Err(io::Error::other("a bad sector"));
            }
            inode.durable = inode.bytes.clone();
            inode.pending.clear();
            Ok(())
        })
    }
}

pub fn name(uri: &str) -> Name {
    uri.parse().expect("a name")
}

/// A repository each of whose versions has files of its own.
pub fn open(disk: &SimDisk) -> ndn_repo::Result<Repo> {
    open_with(disk, 0)
}

/// A repository whose versions of so many bytes lie together.
pub fn open_with(disk: &SimDisk, small_bytes: u32) -> ndn_repo::Result<Repo> {
    let options = RepoOptions {
        log_bytes: 1 << 16,
        small_bytes,
    };
    let key = SigningKey::hmac_sha256(b"the owner");
    Repo::open_on(Arc::new(disk.clone()), key, &options)
}

/// A repository in a folder of the real disk.
pub fn open_at(folder: &Path) -> ndn_repo::Result<Repo> {
    Repo::open(folder, SigningKey::DigestSha256, &RepoOptions::default())
}

/// Bytes without order.
pub fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    (0..bytes).map(|_| rng.below(256) as u8).collect()
}

/// What the repository answers to an Interest for this name.
pub fn ask(repo: &Repo, name: &Name, prefix: bool) -> ndn_repo::Result<Option<Data>> {
    let wire = Interest::builder(name)
        .can_be_prefix(prefix)
        .must_be_fresh(prefix)
        .nonce(1)
        .build();
    let answer = repo.answer(&Interest::parse(wire).expect("an Interest"))?;
    Ok(answer.map(|wire| Data::parse(wire).expect("a packet")))
}
