//! What a bridge's agent keeps in step: its ports, neighbours and hosts with what the controller knows, and the map of
//! entries with what the controller wants.
//!
//! ```text
//!   an answer ── answered ──▶ what goes is removed ── is_unsettled? wait ──▶ make ──▶ what comes is made
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::batch::astray;
use super::events::Changed;
use super::frames::{Heard, read};
use super::hosts::Hosts;
use super::layout::{Entry, Key};
use super::maps::SwitchMaps;
use super::metrics::Work;
use super::neighbours::{INTERVAL, Neighbours};
use super::ports::{Ports, complain};
use super::session::{Says, Sent, Session};
use super::wire::{HeardAt, PortSays, Request, ends, port_says};
use crate::complaints::{Complaints, Topic};
use crate::maps::MapsError;

mod answers;

/// How often the bridge is looked at where the kernel says nothing, and how soon again where it says something.
const LOOK: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_millis(20);
/// How often hosts are told of again, as the controller may have taken them for somebody else's, or forgotten them.
const AGAIN: Duration = Duration::from_secs(60);
/// Between requests by which news are told at once.
const BREATH: Duration = Duration::from_millis(50);

/// A frame, and the port that it is to leave by.
pub type Outgoing = (u32, Vec<u8>);

/// Everything that changes while the agent runs; one thread at a time has it.
pub struct Keeper {
    ports: Ports,
    maps: SwitchMaps,
    entries: HashMap<Key, Entry>,
    /// Entries that this run of the controller has named, and whether these are all.
    named: HashSet<Key>,
    purged: bool,
    /// Ports from which marked frames are taken.
    links: Vec<u32>,
    session: Session,
    hosts: Hosts,
    neighbours: Neighbours,
    /// LLDP by port.
    lldp: BTreeMap<u32, Vec<u8>>,
    /// What the agent has done.
    pub work: Work,
    look_at: Instant,
    /// When the ports were looked at last, and are to be as the kernel has said something.
    looked: Instant,
    stirred: Option<Instant>,
    lldp_at: Instant,
    tell_at: Instant,
    announce_at: Instant,
    complaints: Complaints,
}

/// What comes of a look around.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// There is something that the controller should hear at once.
    pub urgent: bool,
    /// `trunkline mirror switch off` has begun.
    pub off: bool,
    /// What is to be sent.
    pub send: Vec<Outgoing>,
    /// When to look again.
    pub again: Duration,
}

impl Keeper {
    /// Keeps what is attached.
    ///
    /// # Errors
    /// The maps can't be read.
    pub fn new(
        ports: Ports,
        maps: SwitchMaps,
        session: Session,
        complaints: Complaints,
    ) -> Result<Self, MapsError> {
        let entries: HashMap<Key, Entry> = maps.entries()?.into_iter().collect();
        let links = maps.ports()?;
        let mut hosts = Hosts::default();
        hosts.links(links.iter().copied());
        let now = Instant::now();
        let mut keeper = Self {
            ports,
            maps,
            entries,
            named: HashSet::new(),
            purged: false,
            links,
            session,
            hosts,
            neighbours: Neighbours::default(),
            lldp: BTreeMap::new(),
            work: Work::default(),
            look_at: now,
            looked: now,
            stirred: None,
            lldp_at: now,
            tell_at: now,
            announce_at: now + AGAIN,
            complaints,
        };
        keeper.count();
        Ok(keeper)
    }

    /// Entries that were found when it began.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// What to say to the controller.
    #[must_use]
    pub fn request(&self, wait: bool, leaving: bool) -> (Request, Sent) {
        let ports: Vec<PortSays> = self
            .ports
            .all()
            .iter()
            .map(|port| port_says(port.number, &port.name, &port.mac, port.up))
            .collect();
        let heard: Vec<HeardAt> = self.neighbours.says();
        let copies = self.entries.values().flat_map(Entry::used);
        let replicas: BTreeSet<IpAddr> = copies
            .filter(|copy| copy.position != 0 && !self.purged)
            .map(|copy| ends(&copy.flow).1.ip())
            .collect();
        let replicas: Vec<IpAddr> = replicas.into_iter().collect();
        let says = Says {
            ports: &ports,
            heard: &heard,
            copies_to: &replicas,
        };
        self.session.request(says, self.hosts.news(), wait, leaving)
    }

    /// LLDP for all ports that are up.
    fn our_lldp(&mut self) -> Vec<Outgoing> {
        self.lldp_at = Instant::now() + INTERVAL;
        let up = self.ports.all().iter().filter(|port| port.up);
        up.filter_map(|port| Some((port.number, self.lldp.get(&port.number)?.clone())))
            .collect()
    }

    /// The controller does not answer, for this reason; how long to wait before it is asked again.
    pub fn unanswered(&mut self, why: &str) -> Duration {
        self.work.polls_failed += 1;
        self.complain(
            Topic::Controller,
            &format!("{why}; copies are made as before"),
        );
        self.work.controller_up = false;
        self.session.failed(fastrand::f64())
    }

    /// A frame came in at an interface. What is to be sent then: a switch that is new should know this one at once.
    pub fn frame(&mut self, port: u32, frame: &[u8]) -> Option<Outgoing> {
        if !self.ports.has(port) {
            return None;
        }
        let now = Instant::now();
        match read(frame)? {
            Heard::Host { mac, address } => {
                self.hosts.heard(port, mac, address, now);
                None
            }
            Heard::Switch(origin) => {
                // What the spanning tree blocks is no cable that frames go by.
                if !self.ports.is_up(port) || !self.neighbours.heard(port, origin, frame, now) {
                    return None;
                }
                self.session.changed();
                self.lldp.get(&port).map(|ours| (port, ours.clone()))
            }
        }
    }

    /// Whether the bridge may be another one after this.
    #[must_use]
    pub fn concerns(&self, changed: &Changed) -> bool {
        self.ports.concerns(changed)
    }

    /// Looks at the bridge, and after the program; at once where the kernel has `stirred`.
    pub fn look(&mut self, stirred: bool) -> Look {
        let now = Instant::now();
        let mut off = false;
        if stirred {
            self.stirred.get_or_insert((self.looked + SOON).max(now));
        }
        let is_time = now >= self.look_at;
        if is_time || self.stirred.is_some_and(|at| now >= at) {
            (self.looked, self.stirred) = (now, None);
            self.look_at_ports(now);
        }
        if is_time {
            self.look_at = now + LOOK;
            self.learn(now);
            off = self.read_maps();
        }
        if now >= self.announce_at {
            self.announce_at = now + AGAIN;
            self.hosts.announce();
        }
        let mut send = Vec::new();
        if now >= self.lldp_at {
            send = self.our_lldp();
        }
        let has_news = self.session.has_news() || self.hosts.has_news();
        let urgent = has_news && self.work.controller_up && now >= self.tell_at;
        if urgent {
            self.tell_at = now + BREATH;
        }
        let mut next = match has_news && self.work.controller_up {
            true => self.tell_at.max(now),
            false => self.look_at.min(self.lldp_at),
        };
        if let Some(at) = self.stirred {
            next = next.min(at);
        }
        Look {
            urgent,
            off,
            send,
            again: next.saturating_duration_since(now),
        }
    }

    fn look_at_ports(&mut self, now: Instant) {
        let changed = self.ports.look(&mut self.complaints, now);
        let ports = &self.ports;
        if self.neighbours.forget(|number| ports.is_up(number), now) || changed {
            self.session.changed();
        }
        self.leave_what_is_no_port();
        self.work.ports = self.ports.number() as u64;
        self.work.unusable = self.ports.unusable() as u64;
    }

    /// Removes what would copy from or to interfaces that are no port any more: they may lead to another network now, and
    /// the controller may be away. It is asked for all that it wants, as it counts on what was removed.
    fn leave_what_is_no_port(&mut self) {
        let ports = &self.ports;
        let before = self.entries.len();
        for key in astray(&self.entries, |number| ports.has(number)) {
            self.remove(&key);
        }
        let entries = before - self.entries.len();
        if entries > 0 {
            tracing::info!(
                entries,
                "what was copied from or to ports that have left the bridge is not copied any more"
            );
            self.session.lost();
            self.count();
        }
        if self.links.iter().any(|port| !self.ports.has(*port)) {
            self.set_links(self.links.clone());
        }
    }

    fn learn(&mut self, now: Instant) {
        match self.ports.hosts() {
            Ok(learned) => {
                self.complaints.over(Topic::Hosts);
                self.hosts.learned(&learned, now);
            }
            Err(error) => self.complain(Topic::Hosts, &format!("hosts of the bridge: {error}")),
        }
    }

    /// The kernel says again when interfaces change.
    pub fn hears_again(&mut self) {
        self.complaints.over(Topic::Events);
    }

    /// It does not, for this reason.
    pub fn hears_nothing(&mut self, error: &std::io::Error) {
        let seconds = LOOK.as_secs();
        let what = format!(
            "changes of interfaces are not heard of: {error}; the bridge is looked at every {seconds} s"
        );
        self.complain(Topic::Events, &what);
    }

    /// Whether `trunkline mirror switch off` has begun.
    fn read_maps(&mut self) -> bool {
        let read = self
            .maps
            .totals()
            .and_then(|totals| Ok((totals, self.maps.is_off()?)));
        match read {
            Ok((totals, off)) => {
                self.complaints.over(Topic::Maps);
                self.work.totals = totals;
                off
            }
            Err(error) => {
                self.complain(Topic::Maps, &error.to_string());
                false
            }
        }
    }

    fn count(&mut self) {
        self.work.entries = self.entries.len() as u64;
    }

    fn complain(&mut self, topic: Topic, what: &str) {
        complain(&mut self.complaints, topic, what, Instant::now());
    }
}
