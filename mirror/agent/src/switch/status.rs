//! What mirroring does at a bridge, read from the pinned maps: with or without a running agent.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::Serialize;

use super::attach::{all, attached};
use super::bridge::{BridgeError, bridge};
use super::identity::Identity;
use super::layout::{COUNTER, Copy, Entry, Key};
use super::maps::SwitchMaps;
use super::wire::ends;
use crate::attach::AttachError;
use crate::interfaces::Interface;
use crate::maps::MapsError;
use crate::pins::Pins;

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub struct SwitchStatus {
    /// The folder of the pins.
    pub pin: String,
    /// Whether program and maps are there.
    pub attached: bool,
    /// Whether an agent runs.
    pub agent: bool,
    /// Whether `trunkline mirror switch off` has begun: no copy is made.
    pub off: bool,
    /// Ports with the program.
    pub ports: Vec<PortStatus>,
    /// Ports of the bridge that are without it: nothing is mirrored through them. The agent's log says why.
    pub without_program: Vec<String>,
    /// The datapath id by which the controller knows the bridge, 16 hex digits.
    pub dpid: Option<String>,
    /// What is copied.
    pub entries: Vec<EntryStatus>,
    /// Counters over all entries, those that are gone too.
    pub counters: BTreeMap<&'static str, u64>,
}

/// A port.
#[derive(Clone, Debug, Serialize)]
pub struct PortStatus {
    /// The interface's name.
    pub name: String,
    /// Whether it leads to another mirroring switch, so that marked frames are taken from it.
    pub link: bool,
}

/// Segments that are copied.
#[derive(Clone, Debug, Serialize)]
pub struct EntryStatus {
    /// The port that they come in by.
    pub port: String,
    /// Whether they are copies in transit.
    pub marked: bool,
    /// The copied connection: who sends.
    pub source: SocketAddr,
    /// And to whom.
    pub destination: SocketAddr,
    /// What is made of them.
    pub copies: Vec<CopyStatus>,
    /// Copies that left.
    pub copied: u64,
    /// Their payload, in bytes.
    pub copied_bytes: u64,
    /// Copies that a port did not take.
    pub lost: u64,
}

/// A copy.
#[derive(Clone, Debug, Serialize)]
pub struct CopyStatus {
    /// The port that it leaves by.
    pub port: String,
    /// The replica's position; 0 in transit.
    pub position: u8,
    /// The connection that it enters; none in transit.
    pub source: Option<SocketAddr>,
    /// The same.
    pub destination: Option<SocketAddr>,
}

/// Why there is no status.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The maps can't be read.
    #[error(transparent)]
    Maps(#[from] MapsError),
    /// The ports can't.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The bridge can't.
    #[error("bridge {name}: {cause}")]
    Bridge {
        /// Its name.
        name: String,
        /// What the kernel says.
        cause: String,
    },
}

impl SwitchStatus {
    /// Reads pins and interfaces of this network namespace.
    ///
    /// # Errors
    /// The pins may not be opened, or the kernel refuses.
    pub fn read(pins: &Pins) -> Result<Self, StatusError> {
        let mut status = Self {
            pin: pins.folder().display().to_string(),
            attached: pins.is_here(),
            agent: pins.is_locked(),
            off: false,
            ports: Vec::new(),
            without_program: Vec::new(),
            dpid: None,
            entries: Vec::new(),
            counters: BTreeMap::new(),
        };
        if !status.attached {
            return Ok(status);
        }
        let maps = SwitchMaps::open(&pins.layout())?;
        let (links, names) = (maps.ports()?, names(all()?));
        let attached = attached(pins)?;
        if let Some(identity) = pins.standing::<Identity>() {
            status.without_program = without(&identity.bridge, &attached)?;
            status.dpid = Some(identity.dpid);
        }
        let ports = attached.into_iter().map(|port| PortStatus {
            link: links.contains(&port.index),
            name: port.name,
        });
        status.ports = ports.collect();
        let entries = maps.entries()?;
        status.entries = entries
            .iter()
            .map(|(key, entry)| of(key, entry, &names))
            .collect();
        status
            .entries
            .sort_by(|a, b| (a.source, &a.port).cmp(&(b.source, &b.port)));
        status.counters = COUNTER.into_iter().zip(maps.totals()?).collect();
        status.off = maps.is_off()?;
        Ok(status)
    }
}

/// Ports of a bridge that are not among those with the program; none where there is no such bridge any more.
fn without(name: &str, attached: &[Interface]) -> Result<Vec<String>, StatusError> {
    let found = match bridge(name) {
        Ok(found) => found,
        Err(BridgeError::Missing(_)) => return Ok(Vec::new()),
        Err(error) => {
            return Err(StatusError::Bridge {
                name: name.to_owned(),
                cause: error.to_string(),
            });
        }
    };
    let has_it = |number: u32| attached.iter().any(|port| port.index == number);
    let without = found.ports.into_iter().filter(|port| !has_it(port.number));
    Ok(without.map(|port| port.name).collect())
}

type Names = BTreeMap<u32, String>;

fn names(all: Vec<Interface>) -> Names {
    all.into_iter().map(|i| (i.index, i.name)).collect()
}

fn name(names: &Names, port: u32) -> String {
    names
        .get(&port)
        .cloned()
        .unwrap_or_else(|| port.to_string())
}

fn of(key: &Key, entry: &Entry, names: &Names) -> EntryStatus {
    let (source, destination) = ends(&key.flow);
    let copy = |copy: &Copy| {
        let hop = (copy.position != 0).then(|| ends(&copy.flow));
        CopyStatus {
            port: name(names, copy.port),
            position: copy.position,
            source: hop.map(|(source, _)| source),
            destination: hop.map(|(_, destination)| destination),
        }
    };
    EntryStatus {
        port: name(names, key.port),
        marked: key.marked != 0,
        source,
        destination,
        copies: entry.used().iter().map(copy).collect(),
        copied: entry.copied,
        copied_bytes: entry.copied_bytes,
        lost: entry.lost,
    }
}
