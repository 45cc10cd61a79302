//! Takes mirrored replication off this host, by its pins alone, and puts the host back as it was.
//!
//! ```text
//!   no agent starts from now on (pins.lock_off)
//!        │
//!        ▼
//!   nothing new is sent virtually (config.off)
//!        │   a running agent sees that, has the controller stop the copies, and ends; where none runs, this tells the
//!        │   controller in its place
//!        ▼
//!   no agent, no copies, no flow ahead ── or not in time, unless it must be ──▶ (still attached)
//!        │
//!        ▼
//!   filters, clsact, pins removed
//! ```

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::attach::{AttachError, detach};
use crate::controller::{Client, Place};
use crate::interfaces::interfaces;
use crate::layout::{Counter, Key, Rcv, Snd};
use crate::maps::{Maps, MapsError};
use crate::pins::{PinError, Pins, is_bpf};
use crate::sockets::{End, Sockets};
use crate::standing::{LEASE, Standing};
use crate::status::{Snapshot, is_ahead, now_ns};
use crate::wire::Request;

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(100);
/// No copy for so long: none is on its way.
const QUIET: Duration = Duration::from_secs(1);
/// How long the controller may take to have copies stopped.
const LEAVE: Duration = Duration::from_secs(5);
/// Until it is told again, where it did not answer or switches have not confirmed.
const AGAIN: Duration = Duration::from_secs(1);

/// How to go about it.
#[derive(Clone, Debug)]
pub struct OffOptions {
    /// How long to wait for flows to be where they can go on alone.
    pub wait: Duration,
    /// Then do it all the same.
    pub force: bool,
    /// Who is told that the agent has left, where that has ended without a word; or why nobody can be.
    pub controller: Result<Place, String>,
}

/// What is still in the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InTheWay {
    /// An agent runs.
    pub agent: bool,
    /// Connections whose next replica takes copies, or has acknowledged more than was sent.
    pub ahead: usize,
    /// Copies still come.
    pub copies: bool,
    /// Copies may come: so long yet, or into so many connections, as the controller has not said otherwise.
    pub untold: Option<Untold>,
    /// Connections with entries of another release, which can't be read.
    pub unread: usize,
}

/// The controller has not confirmed that copies have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untold {
    /// Why.
    pub why: String,
    /// Until it takes the agent for gone.
    pub lease: Duration,
    /// Connections that have had copies. A controller that is away can't have them stopped when the lease is over.
    pub connections: usize,
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
    /// The pins can't be used.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// A filter can't be removed.
    #[error(transparent)]
    Attach(#[from] AttachError),
}

/// Waits until flows can do without the programs, and removes them.
///
/// # Errors
/// Flows can't in time, somebody else is about to do the same, or the system refuses.
pub fn off(pins: &Pins, options: &OffOptions) -> Result<Removed, OffError> {
    let mut removed = Removed {
        pins: pins.folder().exists(),
        ..Removed::default()
    };
    // Outside of a BPF filesystem no agent can have pins.
    let there = pins.folder().ancestors().find(|path| path.exists());
    let lock = match there.is_some_and(is_bpf) {
        true => Some(pins.lock_off()?),
        false => None,
    };
    if let Some(in_the_way) = settle(pins, options)? {
        if !options.force {
            return Err(OffError::InTheWay(in_the_way));
        }
        removed.forced = Some(in_the_way);
    }
    // An agent of a release that does not ask for the lock above finds this one.
    let agent = lock.as_ref().map(|_| pins.lock()).transpose();
    let agent = match agent {
        Err(PinError::Running { .. }) if options.force => None,
        outcome => outcome?,
    };
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
    drop((agent, lock));
    Ok(removed)
}

/// Has nothing new sent virtually, and waits; what is still in the way then.
fn settle(pins: &Pins, options: &OffOptions) -> Result<Option<InTheWay>, OffError> {
    let until = Instant::now() + options.wait;
    let mut sockets = Sockets::open();
    let mut maps = if pins.is_here() {
        Some(Maps::open(&pins.layout())?)
    } else {
        None
    };
    let mut leaver = Leaver::new(pins, options);
    let mut quiet = Quiet::default();
    loop {
        let agent = pins.is_locked();
        let now = Instant::now();
        let standing = match agent {
            true => pins.standing(),
            false => leaver.left(until.saturating_duration_since(now)),
        };
        for other in pins.others() {
            other.switch_off()?;
        }
        let unread = pins.others_living(&mut sockets).map(|living| living.len());
        let mut in_the_way = InTheWay {
            agent,
            unread: unread.unwrap_or(1),
            ..InTheWay::default()
        };
        if let Some(maps) = &mut maps {
            // Each time: an agent that was about to start may have had it otherwise.
            switch_off(maps)?;
            let lease = standing.as_ref().map_or(LEASE, Standing::lease);
            in_the_way.ahead = ahead(&maps.snd()?, lease, &mut sockets);
            in_the_way.copies = !quiet.is(Snapshot::read(maps)?.copies(), Instant::now());
            if let Some(standing) = standing.filter(|standing| !agent && standing.counts()) {
                in_the_way.untold = leaver.untold(&standing, &maps.rcv()?, &mut sockets);
            }
        }
        if in_the_way == InTheWay::default() {
            return Ok(None);
        }
        // Where nothing but the second without copies is missing, it is waited for in any case.
        let only_copies = InTheWay {
            copies: false,
            ..in_the_way.clone()
        } == InTheWay::default();
        let now = Instant::now();
        let grace = if only_copies && !quiet.changed {
            QUIET
        } else {
            Duration::ZERO
        };
        if now >= until + grace {
            if options.force && agent {
                // It may hang, and go on later: the controller does not hear it any more then.
                leaver.leave(Duration::ZERO);
            }
            return Ok(Some(in_the_way));
        }
        sleep(LOOK);
    }
}

fn switch_off(maps: &mut Maps) -> Result<(), MapsError> {
    let mut config = maps.config()?;
    if config.off == 0 {
        config.off = 1;
        maps.set_config(config)?;
    }
    Ok(())
}

/// Tells the controller that the agent has left, in the place of one that has ended without a word.
struct Leaver<'a> {
    pins: &'a Pins,
    controller: Result<&'a Place, &'a str>,
    again: Option<Instant>,
    why: String,
}

impl<'a> Leaver<'a> {
    fn new(pins: &'a Pins, options: &'a OffOptions) -> Self {
        Self {
            pins,
            controller: options.controller.as_ref().map_err(String::as_str),
            again: None,
            why: String::new(),
        }
    }

    /// What the controller has to count on of an agent that does not run, after it was told so if it is time.
    fn left(&mut self, wait: Duration) -> Option<Standing> {
        let standing: Standing = self.pins.standing()?;
        let is_due = self.again.is_none_or(|again| again <= Instant::now());
        if !standing.counts() || !is_due {
            return Some(standing);
        }
        self.leave(wait);
        self.again = Some(Instant::now() + AGAIN);
        self.pins.standing()
    }

    /// Tells the controller, which may take so long to have copies stopped.
    fn leave(&mut self, wait: Duration) {
        let Some(mut standing) = self.pins.standing::<Standing>() else {
            return;
        };
        let told = self.controller.map_err(str::to_owned).and_then(|place| {
            let client = Client::new(place, &standing.name).map_err(|error| error.to_string())?;
            let request = Request {
                run: standing.run.clone(),
                addresses: standing.addresses.clone(),
                wait_ms: wait.min(LEAVE).as_millis() as u64,
                leaving: true,
                ..Request::default()
            };
            let answer = client.leave(&request).map_err(|error| error.to_string())?;
            match answer.stopped {
                Some(true) => Ok(()),
                _ => Err(String::from("not all of its switches have confirmed yet")),
            }
        });
        standing.stopped = told.is_ok();
        match told {
            Ok(()) => {
                if let Err(error) = self.pins.set_standing(&standing) {
                    self.why = error.to_string();
                }
            }
            Err(why) => self.why = why,
        }
    }

    /// What that leaves to wait for, if it does.
    fn untold(
        &self,
        standing: &Standing,
        entries: &[(Key, Rcv)],
        sockets: &mut Sockets,
    ) -> Option<Untold> {
        let had_copies = entries.iter().filter(|(_, rcv)| has_copies(rcv));
        let untold = Untold {
            why: self.why.clone(),
            lease: standing.left(),
            connections: had_copies
                .filter(|(key, _)| !sockets.is_gone(key, End::Target))
                .count(),
        };
        (!untold.lease.is_zero() || untold.connections > 0).then_some(untold)
    }
}

/// Whether a copy has come for a connection.
fn has_copies(rcv: &Rcv) -> bool {
    [
        Counter::Mirrored,
        Counter::MirrorStale,
        Counter::MirrorSignal,
        Counter::MirrorUnarmed,
    ]
    .iter()
    .any(|counter| rcv.counters[*counter as usize] != 0)
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
/// One on which nothing was seen for as long as the agent's lease lasts takes none, as switches send none.
fn ahead(entries: &[(Key, Snd)], lease: Duration, sockets: &mut Sockets) -> usize {
    let now_ns = now_ns();
    entries
        .iter()
        .filter(|(key, snd)| {
            let idle = u128::from(now_ns.saturating_sub(snd.seen_ns)) >= lease.as_nanos();
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
    if let Some(untold) = &in_the_way.untold {
        let may = match (untold.lease.as_secs(), untold.connections) {
            (0, n) => format!("copies for {n} connections may still come"),
            (seconds, _) => format!("copies may still come for {seconds} s"),
        };
        said.push(format!(
            "{may}, as the controller has not confirmed: {}",
            untold.why
        ));
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
    use std::net::{TcpListener, TcpStream};
    use std::path::Path;

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

    /// Switches go on without a controller: its lease ends nothing then.
    #[test]
    fn a_connection_that_has_had_copies_is_waited_for_unless_the_controller_confirms() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = listener.local_addr().expect("address");
        let up = TcpStream::connect(to).expect("connect");
        let (down, from) = listener.accept().expect("accept");
        let pins = Pins::at(Path::new("/nowhere"));
        let options = OffOptions {
            wait: Duration::ZERO,
            force: false,
            controller: Err(String::from("nobody is there")),
        };
        let leaver = Leaver::new(&pins, &options);
        let mut sockets = Sockets::open();
        let mut entry = (Key::new(from, to), Rcv::announced(0, None));
        let mut standing = Standing {
            until_ms: 1,
            ..Standing::default()
        };
        let none = leaver.untold(&standing, &[entry], &mut sockets);
        assert_eq!(none, None, "it never had a copy");
        entry.1.counters[Counter::MirrorStale as usize] = 1;
        let untold = leaver.untold(&standing, &[entry], &mut sockets);
        let untold = untold.expect("copies may come");
        assert_eq!((untold.lease, untold.connections), (Duration::ZERO, 1));
        standing.until_ms = u64::MAX;
        let untold = leaver.untold(&standing, &[], &mut sockets);
        assert!(!untold.expect("the lease").lease.is_zero());
        standing.until_ms = 1;
        drop((up, down));
        let none = leaver.untold(&standing, &[entry], &mut sockets);
        assert_eq!(none, None, "it has ended");
    }

    #[test]
    fn what_is_in_the_way_is_said() {
        let in_the_way = InTheWay {
            ahead: 2,
            copies: true,
            untold: Some(Untold {
                why: "nobody is there".into(),
                lease: Duration::from_secs(7),
                connections: 1,
            }),
            ..InTheWay::default()
        };
        let said = OffError::InTheWay(in_the_way).to_string();
        assert!(
            said.starts_with(
                "2 connections still rely on copies, switches still send copies, copies may still come for 7 s, as the \
                 controller has not confirmed: nobody is there; the programs stay"
            ),
            "{said}"
        );
    }
}
