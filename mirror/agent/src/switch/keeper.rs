//! What a bridge's agent keeps in step: its ports, neighbours and hosts with what the controller knows, and the map of
//! entries with what the controller wants.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::attach::Attachment;
use super::bridge::{Bridge, bridge, hosts};
use super::frames::{Heard, read};
use super::hosts::{Hosts, MOST};
use super::layout::{Entry, Key};
use super::maps::SwitchMaps;
use super::metrics::Work;
use super::neighbours::{INTERVAL, Neighbours};
use super::session::{Says, Sent, Session, Taken};
use super::wire::{
    Answer, EntrySays, HeardAt, PortSays, Request, Segments, ends, octets, port_says,
};
use crate::maps::MapsError;

/// How often the bridge is looked at, and after the program at its ports.
const LOOK: Duration = Duration::from_secs(1);
const CHECK: Duration = Duration::from_secs(5);
/// How often hosts are told of again, as the controller may have taken them for somebody else's, or forgotten them.
const AGAIN: Duration = Duration::from_secs(60);
/// Between requests by which news are told at once.
const BREATH: Duration = Duration::from_millis(50);

/// A frame, and the port that it is to leave by.
pub type Outgoing = (u32, Vec<u8>);

/// Everything that changes while the agent runs; one thread at a time has it.
pub struct Keeper {
    name: String,
    bridge: Bridge,
    attachment: Attachment,
    maps: SwitchMaps,
    entries: HashMap<Key, Entry>,
    /// Entries that this run of the controller has named, and whether these are all.
    named: HashSet<Key>,
    purged: bool,
    session: Session,
    hosts: Hosts,
    neighbours: Neighbours,
    /// LLDP by port.
    lldp: BTreeMap<u32, Vec<u8>>,
    /// What the agent has done.
    pub work: Work,
    look_at: Instant,
    check_at: Instant,
    lldp_at: Instant,
    tell_at: Instant,
    announce_at: Instant,
    /// Why the controller did not answer last, and what else was wrong: each is said once.
    unanswered: String,
    complaint: String,
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
        name: String,
        bridge: Bridge,
        attachment: Attachment,
        maps: SwitchMaps,
        session: Session,
    ) -> Result<Self, MapsError> {
        let entries: HashMap<Key, Entry> = maps.entries()?.into_iter().collect();
        let mut hosts = Hosts::default();
        hosts.links(maps.ports()?);
        let now = Instant::now();
        let mut keeper = Self {
            name,
            bridge,
            attachment,
            maps,
            entries,
            named: HashSet::new(),
            purged: false,
            session,
            hosts,
            neighbours: Neighbours::default(),
            lldp: BTreeMap::new(),
            work: Work::default(),
            look_at: now,
            check_at: now + CHECK,
            lldp_at: now,
            tell_at: now,
            announce_at: now + AGAIN,
            unanswered: String::new(),
            complaint: String::new(),
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
            .bridge
            .ports
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

    /// Takes an answer to what was sent, and has the map follow it. What is to be sent out of ports then.
    pub fn answered(&mut self, answer: &Answer, sent: Sent) -> Vec<Outgoing> {
        self.work.polls += 1;
        if !self.work.controller_up {
            self.work.controller_up = true;
            self.neighbours.tell_again();
            tracing::info!(lease_s = answer.lease_s, "controller answers");
        }
        self.hosts.told(sent.hosts);
        let taken = self.session.answered(answer, sent);
        if answer.announce {
            self.hosts.announce();
            self.neighbours.tell_again();
            self.purged = false;
        }
        match taken {
            Taken::Overtaken => {}
            Taken::Difference => self.follow(answer),
            Taken::Anew => {
                self.named.clear();
                self.purged = false;
                self.follow(answer);
            }
        }
        let mut outgoing = self.questions(answer);
        if let Some(lldp) = &answer.lldp {
            let frames = lldp
                .iter()
                .filter_map(|of| Some((of.port, octets(&of.frame)?)));
            self.lldp = frames.collect();
            outgoing.extend(self.our_lldp());
        }
        outgoing
    }

    /// What is to be asked of hosts.
    fn questions(&mut self, answer: &Answer) -> Vec<Outgoing> {
        let now = Instant::now();
        let mut outgoing = Vec::new();
        for send in &answer.send {
            let Some(frame) = octets(&send.frame) else {
                continue;
            };
            for port in &send.ports {
                if self.is_port(*port) {
                    self.hosts.asked(*port, now);
                    outgoing.push((*port, frame.clone()));
                }
            }
        }
        outgoing
    }

    /// LLDP for all ports that are up.
    fn our_lldp(&mut self) -> Vec<Outgoing> {
        self.lldp_at = Instant::now() + INTERVAL;
        let up = self.bridge.ports.iter().filter(|port| port.up);
        up.filter_map(|port| Some((port.number, self.lldp.get(&port.number)?.clone())))
            .collect()
    }

    /// The controller does not answer, for this reason; how long to wait before it is asked again.
    pub fn unanswered(&mut self, why: &str) -> Duration {
        self.work.polls_failed += 1;
        if self.work.controller_up || self.unanswered != why {
            tracing::warn!("{why}; copies are made as before");
            why.clone_into(&mut self.unanswered);
        }
        self.work.controller_up = false;
        self.session.failed(fastrand::f64())
    }

    /// A frame came in at an interface. What is to be sent then: a switch that is new should know this one at once.
    pub fn frame(&mut self, port: u32, frame: &[u8]) -> Option<Outgoing> {
        if !self.is_port(port) {
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
                if !self.is_up(port) || !self.neighbours.heard(port, origin, frame, now) {
                    return None;
                }
                self.session.changed();
                self.lldp.get(&port).map(|ours| (port, ours.clone()))
            }
        }
    }

    fn is_up(&self, number: u32) -> bool {
        let mut ports = self.bridge.ports.iter();
        ports.any(|port| port.number == number && port.up)
    }

    fn is_port(&self, number: u32) -> bool {
        self.bridge.ports.iter().any(|port| port.number == number)
    }

    /// Looks at the bridge, and after the program.
    pub fn look(&mut self) -> Look {
        let now = Instant::now();
        let mut off = false;
        if now >= self.look_at {
            self.look_at = now + LOOK;
            self.read_bridge();
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
        let next = match has_news && self.work.controller_up {
            true => self.tell_at.max(now),
            false => self.look_at.min(self.lldp_at),
        };
        Look {
            urgent,
            off,
            send,
            again: next.saturating_duration_since(now),
        }
    }

    fn read_bridge(&mut self) {
        let now = Instant::now();
        let found = match bridge(&self.name) {
            Ok(mut found) => {
                if found.vlan_filtering {
                    // Copies would be sent into the wrong ones.
                    self.complain(&format!("bridge {}: {VLANS}", self.name));
                    found.ports.iter_mut().for_each(|port| port.up = false);
                }
                found
            }
            Err(error) => {
                self.complain(&format!("bridge {}: {error}", self.name));
                Bridge::default()
            }
        };
        let changed = found.ports != self.bridge.ports;
        let learned = hosts(&found, MOST);
        self.bridge = found;
        let ports = &self.bridge.ports;
        let is_up = |number| ports.iter().any(|port| port.number == number && port.up);
        if self.neighbours.forget(is_up, now) || changed {
            self.session.changed();
        }
        if changed || now >= self.check_at {
            self.check_at = now + CHECK;
            self.check(!changed);
        }
        match learned {
            Ok(learned) => self.hosts.learned(&learned, now),
            Err(error) => self.complain(&format!("hosts of bridge {}: {error}", self.name)),
        }
        self.work.ports = self.bridge.ports.len() as u64;
    }

    /// `unasked`: nothing has changed by which it would have to be otherwise.
    fn check(&mut self, unasked: bool) {
        match self.attachment.ensure(&self.bridge.ports) {
            Ok(changes) => {
                for change in changes {
                    if unasked {
                        tracing::warn!("{change}: it was not as it should be");
                    } else {
                        tracing::info!("{change}");
                    }
                }
            }
            Err(error) => self.complain(&error.to_string()),
        }
    }

    /// Whether `trunkline mirror switch off` has begun.
    fn read_maps(&mut self) -> bool {
        let read = self
            .maps
            .totals()
            .and_then(|totals| Ok((totals, self.maps.is_off()?)));
        match read {
            Ok((totals, off)) => {
                self.work.totals = totals;
                off
            }
            Err(error) => {
                self.complain(&error.to_string());
                false
            }
        }
    }

    /// Has entries as an answer says.
    fn follow(&mut self, answer: &Answer) {
        for says in &answer.entries {
            let key = says.of.key();
            self.named.insert(key);
            self.make(&key, says);
        }
        for of in &answer.removed {
            let key = of.key();
            self.named.remove(&key);
            self.remove(&key);
        }
        if answer.purge {
            self.purged = true;
            let there = self.entries.keys();
            let strange: Vec<Key> = there
                .filter(|key| !self.named.contains(key))
                .copied()
                .collect();
            for key in &strange {
                self.remove(key);
            }
            let named = &self.named;
            self.session.wanted(|of| named.contains(&of.key()));
        }
        // The controller is told that nothing is copied any more when that is so.
        self.maps.settle();
        self.admit(&answer.admits);
        self.count();
    }

    /// Takes marked frames from these ports, which lead to other switches.
    fn admit(&mut self, ports: &[u32]) {
        let mut links = ports.to_vec();
        if !self.purged {
            // A controller that has just started may not have found them all.
            let there = self.maps.ports().unwrap_or_default();
            links.extend(there.iter().filter(|port| !ports.contains(port)));
        }
        if let Err(error) = self.maps.set_ports(&links) {
            self.complain(&error.to_string());
        }
        self.work.links = links.len() as u64;
        self.hosts.links(links);
    }

    fn remove(&mut self, key: &Key) {
        let of = Segments::of(key);
        self.session.can(&of);
        if self.entries.remove(key).is_some() {
            tracing::debug!(?of, "entry removed");
            self.work.removed += 1;
        }
        if let Err(error) = self.maps.remove(key) {
            self.complain(&error.to_string());
        }
    }

    fn count(&mut self) {
        self.work.entries = self.entries.len() as u64;
    }

    fn make(&mut self, key: &Key, says: &EntrySays) {
        let made = says.copies().and_then(|copies| {
            let same = self
                .entries
                .get(key)
                .is_some_and(|there| there.used() == copies);
            if same {
                return Ok(());
            }
            let entry = Entry::new(&copies).ok_or("too many copies")?;
            self.maps
                .set(key, &entry)
                .map_err(|error| match error.raw_os_error() {
                    Some(libc::E2BIG) => String::from("no room for more entries at this bridge"),
                    _ => error.to_string(),
                })?;
            tracing::debug!(of = ?says.of, copies = copies.len(), "entry made");
            self.entries.insert(*key, entry);
            self.work.made += 1;
            Ok(())
        });
        match made {
            Ok(()) => self.session.can(&says.of),
            Err(why) => {
                if self.session.cannot(says.of, &why) {
                    tracing::warn!(of = ?says.of, why, "not copied here");
                    self.work.refused += 1;
                }
            }
        }
    }

    fn complain(&mut self, what: &str) {
        if self.complaint != what {
            tracing::error!("{what}");
            what.clone_into(&mut self.complaint);
        }
    }
}

/// Why a bridge that tells VLANs apart is not served.
pub const VLANS: &str = "it filters VLANs, which copies would not heed; switch that off (`ip link set dev BRIDGE type \
                         bridge vlan_filtering 0`), or mirror by OpenFlow";
