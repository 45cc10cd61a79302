//! The switch's maps, as they are pinned.

use std::path::Path;

use aya::maps::{Array, HashMap, MapData, PerCpuArray};

use super::layout::{COUNTERS, Config, Entry, Key, Port};
use crate::maps::{MapsError, found, of, open, removed, sums};

/// Never over an entry that is there.
const BPF_NOEXIST: u64 = 1;

/// The maps, opened from their pins. An entry that was removed may still be in use by a program that runs just now, and its
/// memory may be given to the next one that is made. So whoever makes one asks [`take_unsettled`](Self::take_unsettled)
/// before, and if it is so, waits for programs.
pub struct SwitchMaps {
    entries: HashMap<MapData, Key, Entry>,
    ports: HashMap<MapData, u32, Port>,
    config: Array<MapData, Config>,
    totals: PerCpuArray<MapData, u64>,
    unsettled: bool,
}

impl SwitchMaps {
    /// Opens the pins in a folder.
    ///
    /// # Errors
    /// One is not there, or may not be opened, or has entries of another layout.
    pub fn open(folder: &Path) -> Result<Self, MapsError> {
        Ok(Self {
            entries: open(folder, "mr_sw_entries")?,
            ports: open(folder, "mr_sw_ports")?,
            config: open(folder, "mr_sw_config")?,
            totals: open(folder, "mr_sw_totals")?,
            unsettled: true,
        })
    }

    /// Which segments are copied.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn entries(&self) -> Result<Vec<(Key, Entry)>, MapsError> {
        let name = "mr_sw_entries";
        // The keys first: a list that is walked while entries go begins anew.
        let keys: Vec<Key> = self
            .entries
            .keys()
            .collect::<Result<_, _>>()
            .map_err(of(name))?;
        let mut entries = Vec::new();
        for key in keys {
            if let Some(entry) = found(self.entries.get(&key, 0)).map_err(of(name))? {
                entries.push((key, entry));
            }
        }
        Ok(entries)
    }

    /// Has these segments copied, of which there is no entry.
    ///
    /// # Errors
    /// The map is full, or the kernel refuses.
    pub fn set(&mut self, key: &Key, entry: &Entry) -> Result<(), MapsError> {
        let name = "mr_sw_entries";
        match self
            .entries
            .insert(key, entry, BPF_NOEXIST)
            .map_err(of(name))
        {
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {
                // One that could not be removed before.
                self.remove(key)?;
                wait_for_programs();
                self.entries.insert(key, entry, 0).map_err(of(name))
            }
            outcome => outcome,
        }
    }

    /// Has them copied no more, if they are.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn remove(&mut self, key: &Key) -> Result<(), MapsError> {
        self.unsettled = true;
        removed(self.entries.remove(key)).map_err(of("mr_sw_entries"))
    }

    /// Whether a program may make copies by what was removed since this was asked last, so that it is to be waited for.
    pub fn take_unsettled(&mut self) -> bool {
        std::mem::take(&mut self.unsettled)
    }

    /// Interfaces that lead to other mirroring switches.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn ports(&self) -> Result<Vec<u32>, MapsError> {
        let ports: Result<_, _> = self.ports.keys().collect();
        ports.map_err(of("mr_sw_ports"))
    }

    /// Takes marked frames from these interfaces alone.
    ///
    /// # Errors
    /// There are too many, or the kernel refuses.
    pub fn set_ports(&mut self, ports: &[u32]) -> Result<(), MapsError> {
        let name = "mr_sw_ports";
        let there = self.ports()?;
        for port in there.iter().filter(|port| !ports.contains(port)) {
            removed(self.ports.remove(port)).map_err(of(name))?;
        }
        for port in ports.iter().filter(|port| !there.contains(port)) {
            self.ports
                .insert(port, Port { admits: 1 }, 0)
                .map_err(of(name))?;
        }
        Ok(())
    }

    /// Whether it is switched off.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn is_off(&self) -> Result<bool, MapsError> {
        let config = self.config.get(&0, 0).map_err(of("mr_sw_config"))?;
        Ok(config.off != 0)
    }

    /// Switches it off, or on.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn switch_off(&mut self, off: bool) -> Result<(), MapsError> {
        let config = Config { off: off.into() };
        self.config.set(0, config, 0).map_err(of("mr_sw_config"))
    }

    /// Sums over all entries, by [`Counter`](super::layout::Counter).
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn totals(&self) -> Result<[u64; COUNTERS], MapsError> {
        sums(&self.totals).map_err(of("mr_sw_totals"))
    }
}

/// Returns when no program runs any more that ran when this was called, with whatever was in the maps then.
///
/// Programs run where the kernel's RCU sees them, and membarrier(2) waits for that. Kernels that keep processors free of
/// interruptions (nohz_full) refuse it; no program runs for as long as is waited then.
pub fn wait_for_programs() {
    const GLOBAL: libc::c_int = 1;
    // SAFETY: a plain system call.
    let done = unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) };
    if done < 0 {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}
