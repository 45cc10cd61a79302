//! What the agent keeps in step: the flows that the controller lists, the maps, and the programs at the interfaces.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::attach::Attachment;
use crate::complaints::{Complaints, Topic};
use crate::controller::ControllerError;
use crate::cost::Cost;
use crate::fallen::{Fallen, fallen};
use crate::interfaces::interfaces;
use crate::layout::{Config, FLOWS, Key, Rcv, RcvState, Snd};
use crate::maps::{Maps, MapsError};
use crate::metrics::Work;
use crate::pins::PinError;
use crate::reconcile::{Change, Entries, Present, Reconciler, make_all, objection};
use crate::session::Session;
use crate::sockets::Sockets;
use crate::standing::{Asked, Ledger};
use crate::status::{Snapshot, is_ahead, now_ns};
use crate::wire::{Answer, Flow, Part, Request};

/// How often entries that nobody needs are looked for.
const LOOK: Duration = Duration::from_secs(1);
/// How often programs and addresses are looked after.
const CHECK: Duration = Duration::from_secs(5);
/// How often the start of a stream is looked for that was asked for lately, and later.
const SOON: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(50));
/// How long ago lately is.
const LATELY: Duration = Duration::from_secs(1);

/// Everything that changes while the agent runs; one thread at a time has it.
pub struct Keeper {
    maps: Maps,
    attachment: Attachment,
    interfaces: Vec<String>,
    addresses: Vec<IpAddr>,
    session: Session,
    ledger: Ledger,
    reconciler: Reconciler,
    sockets: Sockets,
    /// Connections that another release's programs have; `None` where there are no such programs.
    others: Option<HashSet<Key>>,
    off: bool,
    /// What the agent has done.
    pub work: Work,
    listed_at: Instant,
    look_at: Instant,
    check_at: Instant,
    /// Why the controller did not answer last, and what else was wrong: each is said once.
    unanswered: String,
    complaint: String,
    /// Flows that fell back, of which there may be many.
    fallbacks: Complaints,
}

/// What comes of a look around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// There is something that the controller should hear at once.
    pub urgent: bool,
    /// `trunkline mirror off` has begun.
    pub off: bool,
    /// When to look again.
    pub again: Duration,
}

impl Keeper {
    /// Keeps what is attached.
    #[must_use]
    pub fn new(
        maps: Maps,
        attachment: Attachment,
        sockets: Sockets,
        interfaces: Vec<String>,
        session: Session,
        ledger: Ledger,
        forget: Duration,
    ) -> Self {
        let now = Instant::now();
        let others = attachment.has_others().then(HashSet::new);
        let mut keeper = Self {
            maps,
            attachment,
            others,
            off: false,
            interfaces,
            addresses: Vec::new(),
            session,
            ledger,
            reconciler: Reconciler::new(forget),
            sockets,
            work: Work::default(),
            listed_at: now,
            look_at: now,
            check_at: now + CHECK,
            unanswered: String::new(),
            complaint: String::new(),
            fallbacks: Complaints::default(),
        };
        keeper.read_addresses();
        keeper.look_after_others();
        keeper
    }

    /// What to say to the controller, which may wait for news if `wait`.
    pub fn ask(&mut self, wait: bool) -> (Request, Asked) {
        let request = self.session.request(&self.addresses, wait, false);
        let (asked, written) = self.ledger.asks(&request.addresses);
        self.complain_of(written);
        (request, asked)
    }

    /// A request has ended. `counts`: the controller may have taken it for a sign of life.
    pub fn asked(&mut self, asked: Asked, counts: bool) {
        let written = self.ledger.asked(asked, counts);
        self.complain_of(written);
    }

    /// The last thing to say to the controller.
    pub fn leave(&mut self) -> Request {
        self.session.request(&self.addresses, false, true)
    }

    /// The controller has answered that.
    pub fn left(&mut self, stopped: bool) {
        let written = self.ledger.left(stopped);
        self.complain_of(written);
    }

    /// Takes an answer of the controller, and has the maps follow it.
    pub fn answered(&mut self, asked: Asked, answer: Answer) {
        self.asked(asked, true);
        self.work.polls += 1;
        if !self.work.controller_up {
            self.work.controller_up = true;
            tracing::info!(
                flows = answer.flows.len(),
                lease_s = answer.lease_s,
                "controller answers"
            );
        }
        if self.session.answered(answer) {
            let written = self.ledger.lease(self.session.lease());
            self.complain_of(written);
            self.listed_at = Instant::now();
            self.work.listed = self.session.flows().unwrap_or_default().len() as u64;
            self.follow();
        }
    }

    /// The controller does not answer, for this reason; how long to wait before it is asked again.
    pub fn unanswered(&mut self, asked: Asked, error: &ControllerError) -> Duration {
        self.asked(asked, error.counts);
        self.work.polls_failed += 1;
        let why = error.to_string();
        if self.work.controller_up || self.unanswered != why {
            tracing::warn!("{why}; flows go on as they are");
            self.unanswered = why;
        }
        self.work.controller_up = false;
        self.session.failed(fastrand::f64())
    }

    /// Looks for starts of streams, for entries that nobody needs, and after the programs.
    pub fn look(&mut self) -> Look {
        let now = Instant::now();
        let mut news = self.read_heads();
        if now >= self.look_at {
            self.look_at = now + LOOK;
            self.look_after_others();
            news |= self.follow();
            self.off |= self.heed_off();
        }
        // Whoever takes the programs off may have done so already.
        if now >= self.check_at && !self.off {
            self.check_at = now + CHECK;
            self.check();
        }
        let waits = self.without_head().next().is_some();
        let again = match waits {
            false => self.look_at.saturating_duration_since(now),
            true if now < self.listed_at + LATELY => SOON.0,
            true => SOON.1,
        };
        Look {
            urgent: news && self.work.controller_up,
            off: self.off,
            again,
        }
    }

    /// Reads starts of streams that this host is to tell of; whether there is news.
    fn read_heads(&mut self) -> bool {
        let wanted: Vec<Flow> = self.without_head().cloned().collect();
        let mut news = false;
        for flow in wanted {
            match self.maps.rcv_of(&flow.receive.key()) {
                Ok(Some(rcv)) if rcv.has_start() => {
                    self.session.has_head(flow.part(), rcv.zero);
                    tracing::debug!(mirror = flow.id, zero = rcv.zero, "start of stream read");
                    news = true;
                }
                Ok(Some(rcv)) if rcv.state == RcvState::Fallen as u8 => {
                    let entry = (flow.receive.key(), rcv);
                    news |= self.heed(fallen(&[flow], &[], &[entry]));
                }
                Ok(_) => {}
                Err(error) => self.complain(&error.to_string()),
            }
        }
        news
    }

    /// Flows whose start is to be read here.
    fn without_head(&self) -> impl Iterator<Item = &Flow> {
        let flows = self.session.without_head();
        flows.filter(|flow| !self.is_others(flow))
    }

    /// Whether another release's programs have it: it is left to them.
    fn is_others(&self, flow: &Flow) -> bool {
        self.others.as_ref().is_some_and(|others| {
            let send = flow.send.is_some_and(|send| others.contains(&send.key()));
            send || others.contains(&flow.receive.key())
        })
    }

    /// Takes another release's programs off when their last connection has ended.
    fn look_after_others(&mut self) {
        if self.others.is_none() || self.off {
            return;
        }
        let Some(living) = self.attachment.others_living(&mut self.sockets) else {
            return self.complain("maps of another release can't be read any more");
        };
        self.work.others = living.len() as u64;
        let is_over = living.is_empty();
        self.others = Some(living);
        if !is_over {
            return;
        }
        // First of all this one drops what nobody knows.
        let config = self.maps.config();
        let done = config
            .and_then(|config| {
                self.maps.set_config(Config {
                    before: 0,
                    ..config
                })
            })
            .map_err(|error| error.to_string())
            .and_then(|()| {
                let forgotten = self.attachment.forget_others();
                forgotten
                    .and_then(|()| self.attachment.ensure())
                    .map_err(|error| error.to_string())
            });
        match done {
            Ok(changes) => {
                self.others = None;
                for change in changes {
                    tracing::info!("{change}: its last connection has ended");
                }
            }
            Err(error) => self.complain(&error),
        }
    }

    /// Has the maps follow what is listed; whether a flow has fallen back of which the controller does not know.
    fn follow(&mut self) -> bool {
        let (entries, fallen) = match self.entries() {
            Ok(there) => there,
            Err(error) => {
                self.complain(&error.to_string());
                return false;
            }
        };
        let listed = self.session.flows().map(<[Flow]>::to_vec);
        let wanted = listed.map(|flows| {
            let is_wanted = |flow: &Flow| {
                if self.is_others(flow) {
                    return false;
                }
                let objection = objection(flow, &self.addresses);
                if let Some(why) = &objection {
                    self.cannot(&flow.part(), why);
                }
                objection.is_none()
            };
            flows.into_iter().filter(is_wanted).collect::<Vec<_>>()
        });
        let sockets = &mut self.sockets;
        let changes = self
            .reconciler
            .changes(wanted.as_deref(), &entries, now_ns(), |key, end| {
                sockets.life(key, end)
            });
        self.apply(&changes);
        self.heed(fallen)
    }

    /// Tells the controller, so that no more copies are made for what does not take them, and the log.
    fn heed(&mut self, all: Vec<Fallen>) -> bool {
        let mut news = false;
        for Fallen { part, why } in all {
            if !self.session.cannot(&part, &why) {
                continue;
            }
            news = true;
            self.work.refused += 1;
            let what = format!("{}: {why}; its copies are to end", part.id);
            if let Some(line) = self.fallbacks.line(Topic::Fallback, &what, Instant::now()) {
                tracing::warn!("{line}");
            }
        }
        news
    }

    /// What is in the maps, and which of the listed flows have fallen back.
    fn entries(&self) -> Result<(Entries, Vec<Fallen>), MapsError> {
        let (snd, rcv) = (self.maps.snd()?, self.maps.rcv()?);
        let fallen = fallen(self.session.flows().unwrap_or_default(), &snd, &rcv);
        let snd = snd.into_iter().map(|(key, snd)| Present {
            key,
            seen_ns: snd.seen_ns,
            ahead: is_ahead(&snd),
            head: None,
        });
        let rcv = rcv.into_iter().map(|(key, rcv)| Present {
            key,
            seen_ns: rcv.seen_ns,
            ahead: false,
            head: rcv.head(),
        });
        let heads = self.maps.heads()?;
        let entries = Entries {
            snd: snd.collect(),
            rcv: rcv.collect(),
            heads: heads
                .into_iter()
                .map(|(key, head)| (key, head.zero))
                .collect(),
        };
        Ok((entries, fallen))
    }

    fn apply(&mut self, changes: &[Change]) {
        for (part, outcome) in make_all(changes, |change| self.make(change)) {
            match outcome {
                Ok(()) => self.session.can(&part),
                Err(why) => {
                    self.cannot(&part, &why);
                }
            }
        }
    }

    fn make(&mut self, change: &Change) -> Result<(), String> {
        let done = match change {
            Change::AddSnd { key, .. } => self.maps.add_snd(*key, &Snd::announced(0)),
            Change::AddRcv { key, next, .. } => self.maps.add_rcv(*key, &Rcv::announced(0, *next)),
            Change::SetHead { key, zero, .. } => self.maps.set_head(*key, *zero),
            Change::Ended { .. } => {
                return Err(String::from(
                    "its connection has ended: this host has made another one of the same ports",
                ));
            }
            Change::RemoveSnd(key) => self.maps.remove_snd(key),
            Change::RemoveRcv(key) => self.maps.remove_rcv(key),
            Change::RemoveHead(key) => self.maps.remove_head(key),
        };
        tracing::debug!(?change, "entry");
        if let Err(error) = done {
            let why = match error.raw_os_error() {
                Some(libc::E2BIG) => format!(
                    "map {} is full: it has room for {FLOWS} connections of this host",
                    error.name
                ),
                _ => error.to_string(),
            };
            if change.part().is_none() {
                self.complain(&why);
            }
            return Err(why);
        }
        self.reconciler.made(change);
        match change.part() {
            Some(_) => self.work.added += 1,
            None => self.work.removed += 1,
        }
        Ok(())
    }

    fn cannot(&mut self, part: &Part, why: &str) -> bool {
        let news = self.session.cannot(part, why);
        if news {
            tracing::warn!(mirror = part.id, why, "not mirrored here");
            self.work.refused += 1;
        }
        news
    }

    /// What the maps say now.
    pub fn snapshot(&mut self) -> Option<Snapshot> {
        match Snapshot::read(&self.maps) {
            Ok(snapshot) => Some(snapshot),
            Err(error) => {
                self.complain(&error.to_string());
                None
            }
        }
    }

    /// What the programs cost, by hook.
    pub fn costs(&self) -> BTreeMap<&'static str, Cost> {
        self.attachment.costs()
    }

    /// Whether `trunkline mirror off` has begun. Nothing new is sent virtually then, whoever said otherwise.
    pub fn heed_off(&mut self) -> bool {
        let begun = self.attachment.is_going_off();
        let done = self.maps.config().and_then(|mut config| {
            if begun && config.off == 0 {
                config.off = 1;
                self.maps.set_config(config)?;
            }
            Ok(config.off != 0)
        });
        match done {
            Ok(off) => off,
            Err(error) => {
                self.complain(&error.to_string());
                begun
            }
        }
    }

    fn check(&mut self) {
        match self.attachment.ensure() {
            Ok(changes) => {
                for change in changes {
                    tracing::warn!("{change}: it was not as it should be");
                }
            }
            Err(error) => self.complain(&error.to_string()),
        }
        self.read_addresses();
    }

    fn read_addresses(&mut self) {
        let all = match interfaces() {
            Ok(all) => all,
            Err(error) => return self.complain(&format!("interfaces: {error}")),
        };
        let ours = all
            .into_iter()
            .filter(|interface| self.interfaces.contains(&interface.name));
        let addresses: Vec<IpAddr> = ours.flat_map(|interface| interface.addresses).collect();
        if addresses != self.addresses {
            tracing::info!(?addresses, "addresses of this host");
            self.addresses = addresses;
        }
    }

    fn complain_of(&mut self, done: Result<(), PinError>) {
        if let Err(error) = done {
            self.complain(&error.to_string());
        }
    }

    fn complain(&mut self, what: &str) {
        if self.complaint != what {
            tracing::error!("{what}");
            what.clone_into(&mut self.complaint);
        }
    }
}
