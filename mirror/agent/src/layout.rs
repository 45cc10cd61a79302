//! Keys and values of the maps: the twins of `mirror/bpf/state.h`, field by field in C's layout; it says what each means.
//! A map whose entries are of another size is refused when it is opened.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use aya::Pod;

/// Connections of which each map of flows has room.
pub const FLOWS: usize = 4096;
/// Octets for which one bit of [`Snd::held`] stands.
pub const UNIT: u32 = 512;
/// Words of [`Snd::held`].
pub const WORDS: usize = 512;
/// Retransmissions that a flow remembers.
pub const REPEATS: usize = 64;
/// How many [`Counter`]s there are.
pub const COUNTERS: usize = Counter::FellBack as usize + 1;
/// How many [`Reason`]s there are.
pub const REASONS: usize = Reason::Urgent as usize + 1;
/// Ports of which [`Config`] has room.
pub const DATA_PORTS: usize = 4;
/// How far beyond D_j's ACK anything is remembered, in octets.
pub const REACH: u32 = (WORDS as u32 * 64 - 64) * UNIT;
/// TCP's largest window, in octets: D_j is no further ahead or behind.
pub const WINDOW: u32 = 1 << 30;
/// First octets of a mirrored copy's Ethernet source address.
pub const MARK: [u8; 3] = [0x02, 0x4d, 0x52];

/// A TCP connection, in the direction of the block.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Who sends the block, in network order; IPv4 is mapped.
    pub source: [u8; 16],
    /// Who receives it.
    pub target: [u8; 16],
    /// In network order.
    pub source_port: [u8; 2],
    /// In network order.
    pub target_port: [u8; 2],
}

impl Key {
    /// The connection by which `source` sends to `target`; both of one family.
    pub fn new(source: SocketAddr, target: SocketAddr) -> Self {
        Self {
            source: mapped(source.ip()).octets(),
            target: mapped(target.ip()).octets(),
            source_port: source.port().to_be_bytes(),
            target_port: target.port().to_be_bytes(),
        }
    }
}

fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// What is counted, by flow and in all.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "state.h says what each counts")]
pub enum Counter {
    Mirrored,
    MirroredBytes,
    MirrorStale,
    MirrorAhead,
    MirrorSignal,
    MirrorUnarmed,
    MirrorUnknown,
    AckRaised,
    Virtual,
    VirtualBytes,
    Real,
    RealBytes,
    RealHole,
    Retransmitted,
    RetransmittedBytes,
    RepeatSuppressed,
    AckHeld,
    AckReleased,
    AckKept,
    AckImplausible,
    SackClipped,
    DsackStripped,
    Aborted,
    WindowLowered,
    Busy,
    FellBack,
}

/// Why a flow fell back to real sending.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It has not.
    None,
    /// The kernel has no such connection.
    NoSocket,
    /// It was announced after the set-up response, which was not seen.
    Late,
    /// TCP options that can't be altered.
    Options,
    /// A segment was sent that the egress program did not see.
    Gap,
    /// A segment is too long.
    Reach,
    /// Urgent data.
    Urgent,
}

/// Where a connection to D_j stands at D_{j-1} (MR_SND).
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "send.h draws the machine")]
pub enum SndState {
    New,
    Real,
    Virtual,
    Recovery,
    Fallen,
    Closed,
}

/// Where a connection from D_{j-1} stands at D_j (MR_RCV).
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "receive.h draws the machine")]
pub enum RcvState {
    New,
    Started,
    OutOfStep,
    InStep,
    Fallen,
}

/// When a segment was last really sent.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Repeat {
    pub seq: u32,
    pub at_ms: u32,
}

/// D_{j-1}'s side of a connection to D_j.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "state.h says what each is")]
pub struct Snd {
    pub lock: u32,
    pub response_at: u32,
    pub state: u8,
    pub reason: u8,
    pub have_zero: u8,
    pub have_sent_ack: u8,
    pub have_ts: u8,
    pub in_step: u8,
    pub confirmed: u8,
    pub scale: u8,
    pub zero: u32,
    pub sent: u32,
    pub acked: u32,
    pub edge: u32,
    pub heard: u32,
    pub recover: u32,
    pub sent_ack: u32,
    pub their_ts: [u8; 4],
    pub their_ms: u32,
    pub our_ts: [u8; 4],
    pub fin: u32,
    pub sent_window: u16,
    pub have_fin: u8,
    pub have_again: u8,
    pub again_from: u32,
    pub again_to: u32,
    pub again_ms: u32,
    pub told: u32,
    pub moved_ms: u32,
    pub part: u32,
    pub owed_ms: u32,
    pub pad: u32,
    pub seen_ns: u64,
    pub seen_tick: u64,
    pub begun_ns: u64,
    pub repeats: [Repeat; REPEATS],
    pub held: [u64; WORDS],
    pub counters: [u64; COUNTERS],
}

/// D_j's side of a connection from D_{j-1}, and D_1's of the client's.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "state.h says what each is")]
pub struct Rcv {
    pub lock: u32,
    pub response_at: u32,
    pub state: u8,
    pub reason: u8,
    pub have_mirrored: u8,
    pub have_next: u8,
    pub zero: u32,
    pub delta: u32,
    pub mirrored: u32,
    pub seen_ns: u64,
    pub seen_tick: u64,
    pub next: Key,
    pub ready: u8,
    pub have_high: u8,
    pub scale: u8,
    pub pad: u8,
    pub high: u32,
    pub pad_high: u32,
    pub counters: [u64; COUNTERS],
}

/// The start of the stream in the client's connection to D_1.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// As D_1's [`Rcv::zero`].
    pub zero: u32,
}

/// Where the stream of a connection starts, as the program has seen it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// What the set-up response acknowledges.
    pub zero: u32,
    /// The response's own number, by which it is known to be of this connection.
    pub first: u32,
    /// 0: the response had passed before the program saw the connection.
    pub known: u32,
    #[allow(missing_docs)]
    pub pad: u32,
}

/// What holds for all flows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Not 0: nothing new is sent virtually.
    pub off: u32,
    /// How soon a retransmission is too soon after the last of the same segment, in milliseconds.
    pub repeat_ms: u32,
    /// Where DataNodes take blocks, in network order; 0 is none. Of these ports' connections it is written down where
    /// their streams start, so that they can be announced later.
    pub data_ports: [[u8; 2]; DATA_PORTS],
    /// Not 0: another release's program is asked after this one.
    pub before: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            off: 0,
            repeat_ms: 25,
            data_ports: [[0; 2]; DATA_PORTS],
            before: 0,
        }
    }
}

impl Config {
    /// The same, of these data ports; [`DATA_PORTS`] at most, or it panics.
    pub fn with_ports(mut self, ports: &[u16]) -> Self {
        assert!(ports.len() <= DATA_PORTS, "{} data ports", ports.len());
        self.data_ports = [[0; 2]; DATA_PORTS];
        for (place, port) in self.data_ports.iter_mut().zip(ports) {
            *place = port.to_be_bytes();
        }
        self
    }
}

impl Snd {
    /// A connection as it is announced. `response_at`: octets that D_j sends before its set-up response.
    pub fn announced(response_at: u32) -> Self {
        Self {
            response_at,
            // SAFETY: integers and arrays of them; all zero is a value of each.
            ..unsafe { std::mem::zeroed() }
        }
    }
}

impl Rcv {
    /// A connection as it is announced. `response_at`: octets that this host sends on it before its set-up response.
    /// `next`: its own connection to the next replica, if there is one.
    pub fn announced(response_at: u32, next: Option<Key>) -> Self {
        // SAFETY: as above.
        let zero: Self = unsafe { std::mem::zeroed() };
        Self {
            response_at,
            have_next: next.is_some().into(),
            next: next.unwrap_or(zero.next),
            ..zero
        }
    }

    /// Whether it is known where the stream starts in this connection ([`Rcv::zero`]).
    #[must_use]
    pub fn has_start(&self) -> bool {
        self.state == RcvState::Started as u8 || self.head().is_some()
    }

    /// Where the stream starts in the connection that is copied, by which copies are moved into this one; none was yet
    /// where there is none.
    #[must_use]
    pub fn head(&self) -> Option<u32> {
        [RcvState::OutOfStep, RcvState::InStep]
            .iter()
            .any(|state| *state as u8 == self.state)
            .then(|| self.zero.wrapping_sub(self.delta))
    }
}

// SAFETY: plain integers without padding that the compiler would add.
unsafe impl Pod for Key {}
// SAFETY: as above.
unsafe impl Pod for Snd {}
// SAFETY: as above.
unsafe impl Pod for Rcv {}
// SAFETY: as above.
unsafe impl Pod for Head {}
// SAFETY: as above.
unsafe impl Pod for Start {}
// SAFETY: as above.
unsafe impl Pod for Config {}
