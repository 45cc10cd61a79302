//! The program in the kernel, and its maps.

use std::{io, path::Path};

use aya::{
    Ebpf, EbpfError, EbpfLoader,
    maps::{Array, HashMap, Map, MapData, MapError, PerCpuArray},
    programs::{ProgramError, SchedClassifier},
};

use crate::layout::{COUNTERS, Config, Head, Key, REASONS, Rcv, Snd, Start};
use crate::maps;

/// What a map of flows gives.
pub type Flows<'a, V> = HashMap<&'a mut MapData, Key, V>;

/// The two programs for a NIC's clsact hooks, loaded, and the maps that they share. Gone from the kernel when it is
/// dropped, unless attached or pinned.
pub struct Program {
    ebpf: Ebpf,
}

/// Why the program is not in the kernel.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There was no clang, or no libbpf, where this was built.
    #[error(
        "built without the eBPF program of mirrored replication; install clang and libbpf-dev and build again"
    )]
    NotBuilt,
    /// The object is not what this agent expects.
    #[error("the eBPF program has no {0}; build it and the agent from the same sources")]
    Missing(&'static str),
    /// The kernel refused a map or the object's types.
    #[error(
        "kernel refused the maps of mirrored replication: {0}; it needs CAP_BPF and CAP_NET_ADMIN, or root, and a \
             kernel with CONFIG_DEBUG_INFO_BTF"
    )]
    Maps(#[from] EbpfError),
    /// The verifier refused a program.
    #[error("kernel refused the program {name} of mirrored replication: {source}")]
    Refused {
        /// Its name in the object.
        name: &'static str,
        /// With the verifier's words.
        source: ProgramError,
    },
    /// A map is not of the layout that this agent expects.
    #[error("map {name} of mirrored replication: {source}")]
    Layout {
        /// Its name in the object.
        name: &'static str,
        /// What differs.
        source: MapError,
    },
}

/// The programs' names.
const INGRESS: &str = "mr_ingress";
const EGRESS: &str = "mr_egress";

/// How often a program is given to the kernel, as libbpf does it.
const LOAD_ATTEMPTS: usize = 5;

/// Gives a program to the kernel, whose verifier gives up with EAGAIN where a signal comes meanwhile.
///
/// # Errors
/// When the kernel refuses it, or a signal has come each time.
pub(crate) fn load_classifier(program: &mut SchedClassifier) -> Result<(), ProgramError> {
    let mut attempts = 1;
    loop {
        match program.load() {
            Err(ProgramError::LoadError { io_error, .. })
                if io_error.kind() == io::ErrorKind::WouldBlock && attempts < LOAD_ATTEMPTS =>
            {
                attempts += 1;
            }
            done => return done,
        }
    }
}

impl Program {
    /// The compiled object; `None` where it was built without clang.
    pub fn object() -> Option<&'static [u8]> {
        #[cfg(mirror_program)]
        {
            Some(aya::include_bytes_aligned!(concat!(
                env!("OUT_DIR"),
                "/mirror.bpf.o"
            )))
        }
        #[cfg(not(mirror_program))]
        {
            None
        }
    }

    /// Loads maps and programs, and attaches nothing.
    pub fn load() -> Result<Self, LoadError> {
        let mut program = Self::load_by(&mut EbpfLoader::new())?;
        let name = "mr_config";
        program
            .config()?
            .set(0, Config::default(), 0)
            .map_err(|source| LoadError::Layout { name, source })?;
        Ok(program)
    }

    /// Loads programs over the maps that are pinned in a folder, and pins those that are not; attaches nothing.
    pub fn load_pinned(folder: &Path) -> Result<Self, LoadError> {
        let mut loader = EbpfLoader::new();
        for name in maps::NAMES {
            loader.map_pin_path(name, folder.join(name));
        }
        Self::load_by(&mut loader)
    }

    fn load_by(loader: &mut EbpfLoader<'_>) -> Result<Self, LoadError> {
        let object = Self::object().ok_or(LoadError::NotBuilt)?;
        let mut program = Self {
            ebpf: loader.load(object)?,
        };
        for name in [INGRESS, EGRESS] {
            load_classifier(program.classifier(name)?)
                .map_err(|source| LoadError::Refused { name, source })?;
        }
        Ok(program)
    }

    fn classifier(&mut self, name: &'static str) -> Result<&mut SchedClassifier, LoadError> {
        let program = self
            .ebpf
            .program_mut(name)
            .ok_or(LoadError::Missing(name))?;
        program
            .try_into()
            .map_err(|source| LoadError::Refused { name, source })
    }

    /// For a NIC's ingress.
    pub fn ingress(&mut self) -> Result<&mut SchedClassifier, LoadError> {
        self.classifier(INGRESS)
    }

    /// For a NIC's egress.
    pub fn egress(&mut self) -> Result<&mut SchedClassifier, LoadError> {
        self.classifier(EGRESS)
    }

    fn map<'a, M>(&'a mut self, name: &'static str) -> Result<M, LoadError>
    where
        M: TryFrom<&'a mut Map, Error = MapError>,
    {
        let map = self.ebpf.map_mut(name).ok_or(LoadError::Missing(name))?;
        M::try_from(map).map_err(|source| LoadError::Layout { name, source })
    }

    /// Connections to the next replica (MR_SND).
    pub fn snd_flows(&mut self) -> Result<Flows<'_, Snd>, LoadError> {
        self.map("mr_snd_flows")
    }

    /// Connections from the previous replica or the client (MR_RCV).
    pub fn rcv_flows(&mut self) -> Result<Flows<'_, Rcv>, LoadError> {
        self.map("mr_rcv_flows")
    }

    /// Starts of streams, as the first replicas have read them.
    pub fn heads(&mut self) -> Result<Flows<'_, Head>, LoadError> {
        self.map("mr_heads")
    }

    /// Where streams of data ports' connections start, announced or not. Whoever announces one needs not ask: the program
    /// looks here.
    pub fn starts(&mut self) -> Result<Flows<'_, Start>, LoadError> {
        self.map("mr_starts")
    }

    /// What holds for all flows; one entry.
    pub fn config(&mut self) -> Result<Array<&mut MapData, Config>, LoadError> {
        self.map("mr_config")
    }

    /// Sums over all flows and CPUs, by [`Counter`](crate::layout::Counter).
    pub fn totals(&mut self) -> Result<[u64; COUNTERS], LoadError> {
        self.sums("mr_totals")
    }

    /// How many flows fell back, over all CPUs, by [`Reason`](crate::layout::Reason).
    pub fn fallbacks(&mut self) -> Result<[u64; REASONS], LoadError> {
        self.sums("mr_fallbacks")
    }

    fn sums<const N: usize>(&mut self, name: &'static str) -> Result<[u64; N], LoadError> {
        let map: PerCpuArray<&mut MapData, u64> = self.map(name)?;
        let mut sums = [0; N];
        for (index, sum) in sums.iter_mut().enumerate() {
            let by_cpu = map
                .get(&(index as u32), 0)
                .map_err(|source| LoadError::Layout { name, source })?;
            *sum = by_cpu.iter().sum();
        }
        Ok(sums)
    }
}
