//! One node: its forwarder, and what its faces lead to.

use super::AppId;
use ndn_forwarder::{Config, FaceId, FaceSpec, Forwarder, Output, StrategyKind};
use ndn_packet::{Name, NetKind, NetPacket};
use std::time::Duration;

/// What is behind a face.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// A line: this direction of a link.
    Line(u32),
    App(AppId),
}

/// The face of a node's link of this place among its neighbours.
pub(super) fn face_of_place(place: usize) -> FaceId {
    FaceId(FaceId::FIRST.0 + place as u64)
}

/// A forwarder that begins when it is needed.
#[derive(Debug, Default)]
pub(super) struct Node {
    forwarder: Option<Box<Forwarder>>,
    /// What faces lead to; face `FIRST + n` stands at `n`.
    targets: Vec<Target>,
    /// The earliest deadline that is in the queue of events, in nanoseconds.
    timer: Option<u64>,
    /// An Interest may have made the deadline earlier than that.
    earlier: bool,
    /// Longest that an Interest waits.
    longest: Duration,
}

impl Node {
    pub(super) fn forwarder(&self) -> Option<&Forwarder> {
        self.forwarder.as_deref()
    }

    /// Begins with a face for each line that leaves the node, in their order.
    pub(super) fn begin(&mut self, config: Config, lines: impl Iterator<Item = u32>) {
        self.longest = config.max_interest_lifetime;
        let mut forwarder = Box::new(Forwarder::new(config));
        for line in lines {
            forwarder.add_face(Duration::ZERO, FaceSpec::remote("sim://", "sim://"));
            self.targets.push(Target::Line(line));
        }
        self.forwarder = Some(forwarder);
    }

    pub(super) fn add_app(&mut self, now: Duration, app: AppId) -> FaceId {
        self.targets.push(Target::App(app));
        match &mut self.forwarder {
            Some(forwarder) => forwarder.add_face(now, FaceSpec::local("sim://", "sim://")),
            None => FaceId::INTERNAL,
        }
    }

    pub(super) fn remove_app(&mut self, now: Duration, face: FaceId) {
        if let Some(forwarder) = &mut self.forwarder {
            forwarder.remove_face(now, face);
        }
    }

    /// Adds a route. One that can't be added is left out: prefixes here are short, faces exist, and the RIB has room
    /// for millions.
    pub(super) fn add_route(&mut self, prefix: &Name, face: FaceId, cost: u64) {
        if let Some(forwarder) = &mut self.forwarder {
            let added = forwarder.add_route(prefix, face, cost);
            debug_assert!(added.is_ok(), "{added:?}");
        }
    }

    pub(super) fn set_strategy(&mut self, prefix: &Name, strategy: StrategyKind) {
        if let Some(forwarder) = &mut self.forwarder {
            forwarder.set_strategy(prefix, strategy);
        }
    }

    pub(super) fn receive(&mut self, now: Duration, face: FaceId, packet: NetPacket) {
        // An Interest alone makes a forwarder wait for a time, that of its own end: all else ends waits. A deadline that
        // nothing waits for any more finds nothing to do.
        if let (Some(timer), NetKind::Interest(interest)) = (self.timer, &packet.packet) {
            let end = now + interest.lifetime_or_default().min(self.longest);
            self.earlier |= end < Duration::from_nanos(timer);
        }
        if let Some(forwarder) = &mut self.forwarder {
            forwarder.receive(now, face, packet);
        }
    }

    /// Called at a deadline from the queue; one that an earlier one has made void does nothing.
    pub(super) fn on_deadline(&mut self, now: Duration) {
        if self.timer.map(Duration::from_nanos) != Some(now) {
            return;
        }
        self.timer = None;
        if let Some(forwarder) = &mut self.forwarder {
            forwarder.on_deadline(now);
        }
    }

    /// The next packet to send, and where to.
    pub(super) fn poll(&mut self) -> Option<(Target, NetPacket)> {
        let forwarder = self.forwarder.as_mut()?;
        loop {
            // Faces are made and closed by the simulation alone.
            if let Output::Send { face, packet } = forwarder.poll_output()? {
                let at = (face.0 - FaceId::FIRST.0) as usize;
                return Some((self.targets[at], packet));
            }
        }
    }

    /// The deadline to put into the queue of events, if an earlier one is not there already.
    pub(super) fn deadline_to_set(&mut self) -> Option<u64> {
        if self.timer.is_some() && !std::mem::take(&mut self.earlier) {
            return None;
        }
        let deadline = self.forwarder.as_ref()?.deadline()?;
        let at = u64::try_from(deadline.as_nanos()).unwrap_or(u64::MAX);
        if self.timer.is_some_and(|timer| timer <= at) {
            return None;
        }
        self.timer = Some(at);
        Some(at)
    }
}
