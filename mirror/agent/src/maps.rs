//! The program's maps, as they are pinned.

use std::path::Path;

use aya::maps::{Array, HashMap, Map, MapData, MapError, PerCpuArray};

use crate::layout::{COUNTERS, Config, Head, Key, REASONS, Rcv, Snd};

/// Every map of the program, by the name of its pin.
pub const NAMES: [&str; 8] = [
    "mr_snd_flows",
    "mr_rcv_flows",
    "mr_heads",
    "mr_starts",
    "mr_config",
    "mr_totals",
    "mr_fallbacks",
    "mr_looked",
];

/// Never over an entry that is there.
const BPF_NOEXIST: u64 = 1;

/// The maps of flows and their settings, opened from their pins.
pub struct Maps {
    snd: HashMap<MapData, Key, Snd>,
    rcv: HashMap<MapData, Key, Rcv>,
    heads: HashMap<MapData, Key, Head>,
    config: Array<MapData, Config>,
    totals: PerCpuArray<MapData, u64>,
    fallbacks: PerCpuArray<MapData, u64>,
}

/// A map can't be opened, read or written.
#[derive(Debug, thiserror::Error)]
#[error("map {name}: {source}")]
pub struct MapsError {
    /// Its name.
    pub name: &'static str,
    /// What the kernel says.
    pub source: MapError,
}

impl MapsError {
    /// What the system said, where it was the system.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        match &self.source {
            MapError::SyscallError(error) => error.io_error.raw_os_error(),
            MapError::IoError(error) => error.raw_os_error(),
            _ => None,
        }
    }
}

/// What the kernel says of a map.
pub fn of(name: &'static str) -> impl Fn(MapError) -> MapsError {
    move |source| MapsError { name, source }
}

/// Opens a map by its pin.
///
/// # Errors
/// It is not there, or may not be opened, or has entries of another layout.
pub fn open<M: TryFrom<Map, Error = MapError>>(
    folder: &Path,
    name: &'static str,
) -> Result<M, MapsError> {
    let data = MapData::from_pin(folder.join(name)).map_err(of(name))?;
    Map::from_map_data(data)
        .and_then(M::try_from)
        .map_err(of(name))
}

impl Maps {
    /// Opens the pins in a folder.
    ///
    /// # Errors
    /// One is not there, or may not be opened, or has entries of another layout.
    pub fn open(folder: &Path) -> Result<Self, MapsError> {
        Ok(Self {
            snd: open(folder, "mr_snd_flows")?,
            rcv: open(folder, "mr_rcv_flows")?,
            heads: open(folder, "mr_heads")?,
            config: open(folder, "mr_config")?,
            totals: open(folder, "mr_totals")?,
            fallbacks: open(folder, "mr_fallbacks")?,
        })
    }

    /// Connections to the next replica.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn snd(&self) -> Result<Vec<(Key, Snd)>, MapsError> {
        all(&self.snd, |key| self.snd.get(key, 0)).map_err(of("mr_snd_flows"))
    }

    /// Connections from the previous replica or the client.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn rcv(&self) -> Result<Vec<(Key, Rcv)>, MapsError> {
        all(&self.rcv, |key| self.settled(key)).map_err(of("mr_rcv_flows"))
    }

    /// One of those.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn rcv_of(&self, key: &Key) -> Result<Option<Rcv>, MapsError> {
        found(self.settled(key)).map_err(of("mr_rcv_flows"))
    }

    /// What belongs to a state is written before the state: who sees the same at two looks has both at the second.
    fn settled(&self, key: &Key) -> Result<Rcv, MapError> {
        let shown = |rcv: &Rcv| (rcv.has_start(), rcv.head().is_some());
        let mut seen = self.rcv.get(key, 0)?;
        // An entry changes so three times at most: it is started, has a head, falls back.
        loop {
            let again = self.rcv.get(key, 0)?;
            if shown(&again) == shown(&seen) {
                return Ok(again);
            }
            seen = again;
        }
    }

    /// Starts of streams.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn heads(&self) -> Result<Vec<(Key, Head)>, MapsError> {
        let heads: Result<Vec<_>, _> = self.heads.iter().collect();
        heads.map_err(of("mr_heads"))
    }

    /// Announces a connection to the next replica; one that is there stays as it is.
    ///
    /// # Errors
    /// The map is full, or the kernel refuses.
    pub fn add_snd(&mut self, key: Key, entry: &Snd) -> Result<(), MapsError> {
        added(self.snd.insert(key, entry, BPF_NOEXIST)).map_err(of("mr_snd_flows"))
    }

    /// Announces a connection from the previous replica or the client; one that is there stays as it is.
    ///
    /// # Errors
    /// The map is full, or the kernel refuses.
    pub fn add_rcv(&mut self, key: Key, entry: &Rcv) -> Result<(), MapsError> {
        added(self.rcv.insert(key, entry, BPF_NOEXIST)).map_err(of("mr_rcv_flows"))
    }

    /// Says where the stream that is copied into a connection starts.
    ///
    /// # Errors
    /// The map is full, or the kernel refuses.
    pub fn set_head(&mut self, key: Key, zero: u32) -> Result<(), MapsError> {
        let head = Head { zero };
        self.heads.insert(key, head, 0).map_err(of("mr_heads"))
    }

    /// Forgets a connection to the next replica.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn remove_snd(&mut self, key: &Key) -> Result<(), MapsError> {
        removed(self.snd.remove(key)).map_err(of("mr_snd_flows"))
    }

    /// Forgets a connection from the previous replica or the client.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn remove_rcv(&mut self, key: &Key) -> Result<(), MapsError> {
        removed(self.rcv.remove(key)).map_err(of("mr_rcv_flows"))
    }

    /// Forgets the start of a stream.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn remove_head(&mut self, key: &Key) -> Result<(), MapsError> {
        removed(self.heads.remove(key)).map_err(of("mr_heads"))
    }

    /// What holds for all flows.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn config(&self) -> Result<Config, MapsError> {
        self.config.get(&0, 0).map_err(of("mr_config"))
    }

    /// Has it hold from now on.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_config(&mut self, config: Config) -> Result<(), MapsError> {
        self.config.set(0, config, 0).map_err(of("mr_config"))
    }

    /// Sums over all flows, by [`Counter`](crate::layout::Counter).
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn totals(&self) -> Result<[u64; COUNTERS], MapsError> {
        sums(&self.totals).map_err(of("mr_totals"))
    }

    /// Flows that fell back, by [`Reason`](crate::layout::Reason).
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn fallbacks(&self) -> Result<[u64; REASONS], MapsError> {
        sums(&self.fallbacks).map_err(of("mr_fallbacks"))
    }
}

fn all<V: aya::Pod>(
    map: &HashMap<MapData, Key, V>,
    look: impl Fn(&Key) -> Result<V, MapError>,
) -> Result<Vec<(Key, V)>, MapError> {
    let mut entries = Vec::new();
    // The keys first: a list that is walked while entries go begins anew.
    let keys: Vec<Key> = map.keys().collect::<Result<_, _>>()?;
    for key in keys {
        if let Some(value) = found(look(&key))? {
            entries.push((key, value));
        }
    }
    Ok(entries)
}

/// What was looked up, if it is there.
///
/// # Errors
/// The kernel refuses.
pub fn found<V>(result: Result<V, MapError>) -> Result<Option<V>, MapError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(MapError::KeyNotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

fn added(result: Result<(), MapError>) -> Result<(), MapError> {
    unless(result, libc::EEXIST)
}

/// An entry that is not there is removed already.
///
/// # Errors
/// The kernel refuses.
pub fn removed(result: Result<(), MapError>) -> Result<(), MapError> {
    match result {
        Err(MapError::KeyNotFound) => Ok(()),
        result => unless(result, libc::ENOENT),
    }
}

fn unless(result: Result<(), MapError>, code: i32) -> Result<(), MapError> {
    match result {
        Err(MapError::SyscallError(error)) if error.io_error.raw_os_error() == Some(code) => Ok(()),
        result => result,
    }
}

/// Sums over all CPUs.
///
/// # Errors
/// The kernel refuses.
pub fn sums<const N: usize>(map: &PerCpuArray<MapData, u64>) -> Result<[u64; N], MapError> {
    let mut sums = [0; N];
    for (index, sum) in sums.iter_mut().enumerate() {
        *sum = map.get(&(index as u32), 0)?.iter().sum();
    }
    Ok(sums)
}
