//! What mirrored replication does on this host, read from the pinned maps: with or without a running agent.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::cost::{Cost, costs};
use crate::interfaces::interfaces;
use crate::layout::{COUNTERS, Counter, Key, REASONS, Rcv, Snd};
use crate::maps::{Maps, MapsError};
use crate::pins::Pins;
use crate::sockets::Sockets;
use crate::tc::{self, Hook};
use crate::words::{COUNTER, RCV_STATE, REASON, SND_STATE, word};

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The folder of the pins.
    pub pin: String,
    /// Whether programs and maps are there.
    pub attached: bool,
    /// Whether an agent runs.
    pub agent: bool,
    /// Whether `trunkline mirror off` has begun: nothing new is sent virtually.
    pub off: bool,
    /// Connections that the programs of another release have; `None` where that can't be told.
    pub other_release: Option<usize>,
    /// Interfaces with a program of ours.
    pub interfaces: Vec<At>,
    /// Connections that are mirrored, or may be.
    pub flows: Vec<FlowStatus>,
    /// Counters over all flows, those that are gone too.
    pub counters: BTreeMap<&'static str, u64>,
    /// Flows that fell back to real sending, by reason.
    pub fallbacks: BTreeMap<&'static str, u64>,
    /// What the programs cost, by hook: `ingress`, `egress`.
    pub cost: BTreeMap<&'static str, Cost>,
}

/// An interface, and which programs are on it.
#[derive(Clone, Debug, Serialize)]
pub struct At {
    /// Its name.
    pub name: String,
    /// Whether ours sees what comes in.
    pub ingress: bool,
    /// Whether ours sees what goes out.
    pub egress: bool,
}

/// Which end of a connection this host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// It sends to the next replica.
    Send,
    /// It receives from the replica before, or the client.
    Receive,
}

/// A connection.
#[derive(Clone, Debug, Serialize)]
pub struct FlowStatus {
    /// Which end this is.
    pub side: Side,
    /// Who sends the block.
    pub source: SocketAddr,
    /// Who receives it.
    pub target: SocketAddr,
    /// Its state, as the program's state machines have them.
    pub state: &'static str,
    /// Why it fell back, `none` if it has not.
    pub reason: &'static str,
    /// Whether the next replica has acknowledged more than was sent to it.
    pub ahead: bool,
    /// When a segment was last seen, in nanoseconds of the monotonic clock.
    #[serde(skip)]
    pub seen_ns: u64,
    /// What was counted of it.
    pub counters: BTreeMap<&'static str, u64>,
}

/// What the maps say.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Connections.
    pub flows: Vec<FlowStatus>,
    /// By [`Counter`].
    pub totals: [u64; COUNTERS],
    /// By [`Reason`](crate::layout::Reason).
    pub fallbacks: [u64; REASONS],
}

impl Snapshot {
    /// Reads the maps.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn read(maps: &Maps) -> Result<Self, MapsError> {
        let send = maps.snd()?.into_iter().map(|(key, snd)| of_snd(&key, &snd));
        let receive = maps.rcv()?.into_iter().map(|(key, rcv)| of_rcv(&key, &rcv));
        Ok(Self {
            flows: send.chain(receive).collect(),
            totals: maps.totals()?,
            fallbacks: maps.fallbacks()?,
        })
    }

    /// Marked frames that came, whatever became of them.
    #[must_use]
    pub fn copies(&self) -> u64 {
        [
            Counter::Mirrored,
            Counter::MirrorStale,
            Counter::MirrorSignal,
            Counter::MirrorUnarmed,
            Counter::MirrorUnknown,
        ]
        .iter()
        .map(|counter| self.totals[*counter as usize])
        .sum()
    }
}

impl Status {
    /// Reads pins and interfaces of this network namespace.
    ///
    /// # Errors
    /// The pins may not be opened, or the kernel refuses.
    pub fn read(pins: &Pins) -> Result<Self, MapsError> {
        let mut status = Self {
            pin: pins.folder().display().to_string(),
            attached: pins.is_here(),
            agent: pins.is_locked(),
            off: pins.is_going_off(),
            other_release: pins
                .others_living(&mut Sockets::open())
                .map(|living| living.len()),
            interfaces: attached_interfaces(),
            flows: Vec::new(),
            counters: BTreeMap::new(),
            fallbacks: BTreeMap::new(),
            cost: costs(pins),
        };
        if status.attached {
            let maps = Maps::open(&pins.layout())?;
            let snapshot = Snapshot::read(&maps)?;
            status.off |= maps.config()?.off != 0;
            status.flows = snapshot.flows;
            status.counters = COUNTER.into_iter().zip(snapshot.totals).collect();
            let reasons = REASON.into_iter().zip(snapshot.fallbacks);
            status.fallbacks = reasons.filter(|(name, _)| *name != "none").collect();
        }
        Ok(status)
    }
}

/// Interfaces on which there is a program of ours.
fn attached_interfaces() -> Vec<At> {
    let all = interfaces().unwrap_or_default();
    all.into_iter()
        .map(|interface| {
            let has = |hook| tc::ours(interface.index, hook).is_ok_and(|all| !all.is_empty());
            At {
                ingress: has(Hook::Ingress),
                egress: has(Hook::Egress),
                name: interface.name,
            }
        })
        .filter(|at| at.ingress || at.egress)
        .collect()
}

fn of_snd(key: &Key, snd: &Snd) -> FlowStatus {
    FlowStatus {
        side: Side::Send,
        state: word(&SND_STATE, snd.state),
        reason: word(&REASON, snd.reason),
        ahead: is_ahead(snd),
        seen_ns: snd.seen_ns,
        ..of(key, &snd.counters, Side::Send)
    }
}

fn of_rcv(key: &Key, rcv: &Rcv) -> FlowStatus {
    FlowStatus {
        state: word(&RCV_STATE, rcv.state),
        reason: word(&REASON, rcv.reason),
        seen_ns: rcv.seen_ns,
        ..of(key, &rcv.counters, Side::Receive)
    }
}

fn of(key: &Key, counters: &[u64; COUNTERS], side: Side) -> FlowStatus {
    let counted = COUNTER.into_iter().zip(*counters);
    FlowStatus {
        side,
        source: place(&key.source, key.source_port),
        target: place(&key.target, key.target_port),
        state: "new",
        reason: "none",
        ahead: false,
        seen_ns: 0,
        counters: counted.filter(|(_, n)| *n != 0).collect(),
    }
}

/// Whether the next replica has acknowledged more than was sent to it: sequence numbers wrap.
#[must_use]
pub fn is_ahead(snd: &Snd) -> bool {
    snd.acked.wrapping_sub(snd.sent) as i32 > 0
}

/// The clock by which the programs say when a segment was seen, in nanoseconds.
#[must_use]
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// An end of a connection, as people write it.
#[must_use]
pub fn place(address: &[u8; 16], port: [u8; 2]) -> SocketAddr {
    let address = Ipv6Addr::from(*address);
    let address = address
        .to_ipv4_mapped()
        .map_or(IpAddr::V6(address), IpAddr::V4);
    SocketAddr::new(address, u16::from_be_bytes(port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ahead_is_told_across_the_wrap() {
        let mut snd = Snd::announced(0);
        for (sent, acked, ahead) in [
            (10, 10, false),
            (10, 11, true),
            (11, 10, false),
            (u32::MAX, 5, true),
            (5, u32::MAX, false),
        ] {
            (snd.sent, snd.acked) = (sent, acked);
            assert_eq!(is_ahead(&snd), ahead, "{sent} {acked}");
        }
    }

    #[test]
    fn places_are_read_back() {
        for text in ["10.0.0.2:9866", "[2001:db8::1]:9866"] {
            let at: SocketAddr = text.parse().expect("a place");
            let key = Key::new(at, at);
            assert_eq!(place(&key.source, key.source_port), at);
        }
    }
}
