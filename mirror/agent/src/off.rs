//! Takes mirrored replication off this host, by its pins alone, and puts the host back as it was.
//!
//! ```text
//!   nothing new is sent virtually (config.off)
//!        │   a running agent sees that, has the controller stop the copies, and ends
//!        ▼
//!   no agent, no copies, no flow ahead ── or not in time, unless it must be ──▶ (still attached)
//!        │
//!        ▼
//!   filters, clsact, pins removed
//! ```

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::attach::{AttachError, detach};
use crate::interfaces::interfaces;
use crate::layout::{Key, Snd};
use crate::maps::{Maps, MapsError};
use crate::pins::{PinError, Pins};
use crate::sockets::{End, Sockets};
use crate::status::{Snapshot, is_ahead, now_ns};

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(100);
/// No copy for so long: switches send none.
const QUIET: Duration = Duration::from_secs(1);

/// After so long without a word of its agent, a controller has a host's copies stopped.
const LEASE: Duration = Duration::from_secs(20);

/// How to go about it.
#[derive(Clone, Copy, Debug)]
pub struct OffOptions {
    /// How long to wait for flows to be where they can go on alone.
    pub wait: Duration,
    /// Then do it all the same.
    pub force: bool,
}

/// What is still in the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InTheWay {
    /// An agent runs.
    pub agent: bool,
    /// Connections whose next replica takes copies, or has acknowledged more than was sent.
    pub ahead: usize,
    /// Copies still come.
    pub copies: bool,
    /// Connections with entries of another release, which can't be read.
    pub unread: usize,
}

/// What was taken off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Interfaces that had programs, or a clsact of an agent.
    pub interfaces: Vec<String>,
    /// Whether there were pins.
    pub pins: bool,
    /// What was in the way, where it had to be.
    pub forced: Option<InTheWay>,
}

/// Why it is still attached.
#[derive(Debug, thiserror::Error)]
pub enum OffError {
    /// Flows can't go on alone yet.
    #[error(
        "{}; the programs stay, and send nothing new virtually: run it again later, or with --force, which may break \
         these connections",
        say(.0)
    )]
    InTheWay(InTheWay),
    /// The maps can't be used.
    #[error(transparent)]
    Maps(#[from] MapsError),
    /// The pins can't be removed.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// A filter can't be removed.
    #[error(transparent)]
    Attach(#[from] AttachError),
}

/// Waits until flows can do without the programs, and removes them.
///
/// # Errors
/// Flows can't in time, or the system refuses.
pub fn off(pins: &Pins, options: &OffOptions) -> Result<Removed, OffError> {
    let mut removed = Removed {
        pins: pins.folder().exists(),
        ..Removed::default()
    };
    if let Some(in_the_way) = settle(pins, options.wait)? {
        if !options.force {
            return Err(OffError::InTheWay(in_the_way));
        }
        removed.forced = Some(in_the_way);
    }
    let all = interfaces().map_err(|error| AttachError::Interface {
        name: String::from("all"),
        cause: error.to_string(),
    })?;
    for interface in all {
        if detach(pins, &interface)? {
            removed.interfaces.push(interface.name);
        }
    }
    pins.remove()?;
    Ok(removed)
}

/// Has nothing new sent virtually, and waits; what is still in the way then.
fn settle(pins: &Pins, wait: Duration) -> Result<Option<InTheWay>, OffError> {
    let until = Instant::now() + wait;
    let mut sockets = Sockets::open();
    let maps = if pins.is_here() {
        let mut maps = Maps::open(&pins.layout())?;
        let mut config = maps.config()?;
        config.off = 1;
        maps.set_config(config)?;
        Some(maps)
    } else {
        None
    };
    let mut quiet = Quiet::default();
    loop {
        let mut in_the_way = InTheWay {
            agent: pins.is_locked(),
            unread: pins.others_living(&mut sockets).unwrap_or(1),
            ..InTheWay::default()
        };
        if let Some(maps) = &maps {
            in_the_way.ahead = ahead(&maps.snd()?, now_ns(), &mut sockets);
            in_the_way.copies = !quiet.is(Snapshot::read(maps)?.copies(), Instant::now());
        }
        if in_the_way == InTheWay::default() {
            return Ok(None);
        }
        // Where nothing but the second without copies is missing, it is waited for in any case.
        let only_copies = InTheWay {
            copies: false,
            ..in_the_way
        } == InTheWay::default();
        let now = Instant::now();
        let grace = if only_copies && !quiet.changed {
            QUIET
        } else {
            Duration::ZERO
        };
        if now >= until + grace {
            return Ok(Some(in_the_way));
        }
        sleep(LOOK);
    }
}

/// Whether a count has stood still for long enough.
#[derive(Default)]
struct Quiet {
    last: Option<(u64, Instant)>,
    changed: bool,
}

impl Quiet {
    fn is(&mut self, count: u64, now: Instant) -> bool {
        match self.last {
            Some((before, since)) if before == count => now - since >= QUIET,
            before => {
                self.changed = before.is_some();
                self.last = Some((count, now));
                // Never a copy: none is on its way.
                count == 0
            }
        }
    }
}

/// Connections that can't do without the program: the next replica is ahead, or takes copies still and may be any time.
/// One on which nothing was seen for as long as an agent's lease lasts takes none, as switches send none.
fn ahead(entries: &[(Key, Snd)], now_ns: u64, sockets: &mut Sockets) -> usize {
    entries
        .iter()
        .filter(|(key, snd)| {
            let idle = now_ns.saturating_sub(snd.seen_ns) >= LEASE.as_nanos() as u64;
            let takes_copies = snd.in_step != 0 && !idle;
            (is_ahead(snd) || takes_copies) && !sockets.is_gone(key, End::Source)
        })
        .count()
}

fn say(in_the_way: &InTheWay) -> String {
    let mut said = Vec::new();
    if in_the_way.agent {
        said.push(String::from("an agent still runs"));
    }
    if in_the_way.ahead > 0 {
        said.push(format!(
            "{} connections still rely on copies",
            in_the_way.ahead
        ));
    }
    if in_the_way.copies {
        said.push(String::from("switches still send copies"));
    }
    if in_the_way.unread > 0 {
        said.push(format!(
            "{} connections of an agent of another release can't be looked at",
            in_the_way.unread
        ));
    }
    said.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_have_ended_when_none_came_for_a_while() {
        let (mut quiet, at) = (Quiet::default(), Instant::now());
        assert!(!quiet.is(5, at));
        assert!(!quiet.is(5, at + QUIET / 2));
        assert!(!quiet.is(6, at + QUIET));
        assert!(!quiet.is(6, at + QUIET * 3 / 2));
        assert!(quiet.is(6, at + QUIET * 2));
        assert!(Quiet::default().is(0, at), "there never was one");
    }

    #[test]
    fn what_is_in_the_way_is_said() {
        let in_the_way = InTheWay {
            ahead: 2,
            copies: true,
            ..InTheWay::default()
        };
        let said = OffError::InTheWay(in_the_way).to_string();
        assert!(
            said.starts_with(
                "2 connections still rely on copies, switches still send copies; the programs stay"
            ),
            "{said}"
        );
    }
}
