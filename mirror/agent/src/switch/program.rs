//! The switch's program in the kernel, and its maps.

use std::path::Path;

use aya::maps::{Array, HashMap, Map, MapData, MapError, PerCpuArray};
use aya::programs::SchedClassifier;
use aya::{Ebpf, EbpfLoader};

use super::layout::{COUNTERS, Config, Entry, Key, Port};
use crate::program::{LoadError, load_classifier};

/// Every map of the program, by the name of its pin.
pub const MAPS: [&str; 4] = [
    "mr_sw_entries",
    "mr_sw_ports",
    "mr_sw_config",
    "mr_sw_totals",
];
/// What tells layouts of these apart, made of the header that says them.
pub const LAYOUT: &str = env!("SWITCH_LAYOUT");
const NAME: &str = "mr_switch";

/// The program for a bridge's ports, loaded, and its maps. Gone from the kernel when it is dropped, unless attached or
/// pinned.
pub struct SwitchProgram {
    ebpf: Ebpf,
}

impl SwitchProgram {
    /// The compiled object; `None` where it was built without clang.
    #[must_use]
    pub fn object() -> Option<&'static [u8]> {
        #[cfg(mirror_program)]
        {
            Some(aya::include_bytes_aligned!(concat!(
                env!("OUT_DIR"),
                "/switch.bpf.o"
            )))
        }
        #[cfg(not(mirror_program))]
        {
            None
        }
    }

    /// Loads maps and program, and attaches nothing.
    ///
    /// # Errors
    /// It was not built, or the kernel refuses it.
    pub fn load() -> Result<Self, LoadError> {
        Self::load_by(&mut EbpfLoader::new())
    }

    /// Loads it over the maps that are pinned in a folder, and pins those that are not; attaches nothing.
    ///
    /// # Errors
    /// As [`SwitchProgram::load`].
    pub fn load_pinned(folder: &Path) -> Result<Self, LoadError> {
        let mut loader = EbpfLoader::new();
        for name in MAPS {
            loader.map_pin_path(name, folder.join(name));
        }
        Self::load_by(&mut loader)
    }

    fn load_by(loader: &mut EbpfLoader<'_>) -> Result<Self, LoadError> {
        let object = Self::object().ok_or(LoadError::NotBuilt)?;
        let mut program = Self {
            ebpf: loader.load(object)?,
        };
        load_classifier(program.classifier()?)
            .map_err(|source| LoadError::Refused { name: NAME, source })?;
        Ok(program)
    }

    /// For a port's ingress.
    ///
    /// # Errors
    /// The object lacks it.
    pub fn classifier(&mut self) -> Result<&mut SchedClassifier, LoadError> {
        let program = self
            .ebpf
            .program_mut(NAME)
            .ok_or(LoadError::Missing(NAME))?;
        program
            .try_into()
            .map_err(|source| LoadError::Refused { name: NAME, source })
    }

    fn map<'a, M>(&'a mut self, name: &'static str) -> Result<M, LoadError>
    where
        M: TryFrom<&'a mut Map, Error = MapError>,
    {
        let map = self.ebpf.map_mut(name).ok_or(LoadError::Missing(name))?;
        M::try_from(map).map_err(|source| LoadError::Layout { name, source })
    }

    /// Which segments are copied.
    ///
    /// # Errors
    /// The map is of another layout.
    pub fn entries(&mut self) -> Result<HashMap<&mut MapData, Key, Entry>, LoadError> {
        self.map("mr_sw_entries")
    }

    /// Ports toward other mirroring switches, by interface.
    ///
    /// # Errors
    /// As [`SwitchProgram::entries`].
    pub fn ports(&mut self) -> Result<HashMap<&mut MapData, u32, Port>, LoadError> {
        self.map("mr_sw_ports")
    }

    /// What holds for all; one entry.
    ///
    /// # Errors
    /// As [`SwitchProgram::entries`].
    pub fn config(&mut self) -> Result<Array<&mut MapData, Config>, LoadError> {
        self.map("mr_sw_config")
    }

    /// Sums over all entries and CPUs, by [`Counter`](super::layout::Counter).
    ///
    /// # Errors
    /// As [`SwitchProgram::entries`].
    pub fn totals(&mut self) -> Result<[u64; COUNTERS], LoadError> {
        let name = "mr_sw_totals";
        let map: PerCpuArray<&mut MapData, u64> = self.map(name)?;
        let mut sums = [0; COUNTERS];
        for (index, sum) in sums.iter_mut().enumerate() {
            let by_cpu = map
                .get(&(index as u32), 0)
                .map_err(|source| LoadError::Layout { name, source })?;
            *sum = by_cpu.iter().sum();
        }
        Ok(sums)
    }
}
