//! The ports of a bridge, and the program at them.

use std::io;
use std::time::{Duration, Instant};

use super::attach::Attachment;
use super::bridge::{Bridge, BridgePort, bridge, hosts};
use super::events::Changed;
use super::fit::MOST_PORTS;
use super::frames::Mac;
use super::hosts::MOST;
use super::unusable::Unusable;
use crate::attach::AttachError;
use crate::complaints::{Complaints, Topic};

/// How often it is looked whether the program is where it should be.
const CHECK: Duration = Duration::from_secs(5);

/// Why a bridge that tells VLANs apart is not served.
pub const VLANS: &str = "it filters VLANs, which copies would not heed; switch that off (`ip link set dev BRIDGE type \
                         bridge vlan_filtering 0`), or mirror by OpenFlow";

/// At which ports the program is seen to.
#[derive(Clone, Copy)]
enum See<'a> {
    /// At all. `unasked`: nothing has changed by which it would have to be otherwise.
    ToAll { unasked: bool },
    /// At those that were not among these ports before, or otherwise: a bridge may have a thousand.
    ToWhatHasChanged(&'a [BridgePort]),
}

impl See<'_> {
    fn is_meant(self, port: &BridgePort) -> bool {
        match self {
            Self::ToAll { .. } => true,
            Self::ToWhatHasChanged(before) => find(before, port.number) != Some(port),
        }
    }

    /// Whether what is no port may have the program.
    fn may_have_been(self, number: u32) -> bool {
        match self {
            Self::ToAll { .. } => true,
            Self::ToWhatHasChanged(before) => find(before, number).is_some(),
        }
    }
}

/// The port of this number, of ports in the order of their numbers.
fn find(ports: &[BridgePort], number: u32) -> Option<&BridgePort> {
    let at = ports.binary_search_by_key(&number, |port| port.number);
    at.ok().map(|at| &ports[at])
}

/// The bridge as it was seen last.
pub struct Ports {
    name: String,
    attachment: Attachment,
    bridge: Bridge,
    unusable: Unusable,
    /// What counts of its ports: see [`counted`].
    counted: Vec<BridgePort>,
    check_at: Instant,
}

impl Ports {
    /// Attaches the program to the bridge's ports, as far as they take it.
    ///
    /// # Errors
    /// There are ports, and none takes it; or the pins can't be used.
    pub fn start(
        name: String,
        bridge: Bridge,
        attachment: Attachment,
        complaints: &mut Complaints,
    ) -> Result<Self, AttachError> {
        let now = Instant::now();
        let mut ports = Self {
            name,
            attachment,
            bridge,
            unusable: Unusable::default(),
            counted: Vec::new(),
            check_at: now,
        };
        let refused = ports.ensure(See::ToAll { unasked: false }, complaints, now)?;
        match refused {
            Some(error) if ports.unusable.count() == ports.bridge.ports.len() => Err(error),
            _ => {
                ports.count(complaints, now);
                Ok(ports)
            }
        }
    }

    /// Those that count, in the order of their numbers.
    #[must_use]
    pub fn all(&self) -> &[BridgePort] {
        &self.counted
    }

    /// How many the bridge has.
    #[must_use]
    pub fn number(&self) -> usize {
        self.bridge.ports.len()
    }

    /// How many of them can't have the program.
    #[must_use]
    pub fn unusable(&self) -> usize {
        self.unusable.count()
    }

    /// Whether it is one.
    #[must_use]
    pub fn has(&self, number: u32) -> bool {
        find(&self.counted, number).is_some()
    }

    /// Whether frames pass there.
    #[must_use]
    pub fn is_up(&self, number: u32) -> bool {
        find(&self.counted, number).is_some_and(|port| port.up)
    }

    /// Whether the bridge may be another one after this.
    #[must_use]
    pub fn concerns(&self, changed: &Changed) -> bool {
        let of_it = |index| self.bridge.index == index && index != 0;
        changed.name == self.name
            || of_it(changed.index)
            || changed.master.is_some_and(of_it)
            || self.has(changed.index)
    }

    /// Looks at the bridge, and after the program. Whether anything is otherwise than before.
    pub fn look(&mut self, complaints: &mut Complaints, now: Instant) -> bool {
        let found = match bridge(&self.name) {
            Ok(found) if found.vlan_filtering => {
                // Copies would be sent into the wrong ones.
                complain(
                    complaints,
                    Topic::Bridge,
                    &format!("bridge {}: {VLANS}", self.name),
                    now,
                );
                found
            }
            Ok(found) => {
                complaints.over(Topic::Bridge);
                found
            }
            Err(error) => {
                complain(
                    complaints,
                    Topic::Bridge,
                    &format!("bridge {}: {error}", self.name),
                    now,
                );
                error.leaves(&self.bridge)
            }
        };
        let before = std::mem::replace(&mut self.bridge, found);
        let changed = before.ports != self.bridge.ports;
        let what = match now >= self.check_at {
            true => Some(See::ToAll { unasked: !changed }),
            false => changed.then_some(See::ToWhatHasChanged(&before.ports)),
        };
        if let Some(what) = what
            && let Err(error) = self.ensure(what, complaints, now)
        {
            complain(complaints, Topic::Program, &error.to_string(), now);
        }
        self.count(complaints, now)
    }

    /// Hosts that it has learned behind those that count.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn hosts(&self) -> io::Result<Vec<(Mac, u32)>> {
        let mut all = hosts(&self.bridge, MOST)?;
        all.retain(|(_, port)| self.has(*port));
        Ok(all)
    }

    /// Sees to the program. Why the first port that can't have it can't.
    fn ensure(
        &mut self,
        what: See<'_>,
        complaints: &mut Complaints,
        now: Instant,
    ) -> Result<Option<AttachError>, AttachError> {
        let all = &self.bridge.ports;
        self.unusable.keep(|number| find(all, number).is_some());
        let unusable = &self.unusable;
        let done = self.attachment.ensure(
            all,
            |port| what.is_meant(port) && unusable.is_due(port.number, now),
            |number| what.may_have_been(number),
        )?;
        let unasked = matches!(what, See::ToAll { unasked: true });
        if matches!(what, See::ToAll { .. }) {
            self.check_at = now + CHECK;
        }
        if done.changes.is_empty() && done.left.is_empty() {
            complaints.over(Topic::Program);
        }
        for (port, change) in &done.changes {
            let was_unusable = port.is_some_and(|port| self.unusable.works(port));
            if was_unusable {
                complaints.over(Topic::Port);
            }
            if was_unusable || !unasked {
                tracing::info!("{change}");
            } else {
                let what = format!("{change}: it was not as it should be");
                complain(complaints, Topic::Program, &what, now);
            }
        }
        for port in &done.right {
            self.unusable.works(*port);
        }
        for (port, error) in &done.failed {
            let why = error.to_string();
            if self.unusable.failed(*port, &why, now) {
                let what = format!(
                    "{why}; nothing is mirrored through this port, and it is tried again later"
                );
                complain(complaints, Topic::Port, &what, now);
            }
        }
        for error in &done.left {
            complain(complaints, Topic::Program, &error.to_string(), now);
        }
        Ok(done.failed.into_iter().next().map(|(_, error)| error))
    }

    /// Counts anew what counts. Whether that is otherwise than before.
    fn count(&mut self, complaints: &mut Complaints, now: Instant) -> bool {
        let number = self.bridge.ports.len();
        if number > MOST_PORTS {
            let what = format!(
                "bridge {}: it has {number} ports, and the controller takes {MOST_PORTS}; nothing is mirrored through \
                 those with the highest numbers: spread the ports over more bridges",
                self.name
            );
            complain(complaints, Topic::Bound, &what, now);
        } else {
            complaints.over(Topic::Bound);
        }
        let counted = counted(&self.bridge, &self.unusable);
        let changed = counted != self.counted;
        self.counted = counted;
        changed
    }
}

/// Ports as the controller is told of them: as many as it takes, those with the lowest numbers. Nothing is mirrored through
/// one without the program, nor where VLANs are told apart, as if it were down.
fn counted(bridge: &Bridge, unusable: &Unusable) -> Vec<BridgePort> {
    let first = bridge.ports.iter().take(MOST_PORTS);
    first
        .map(|port| BridgePort {
            up: port.up && !bridge.vlan_filtering && !unusable.has(port.number),
            ..port.clone()
        })
        .collect()
}

/// Puts a complaint into the log, unless there are too many of its kind.
pub fn complain(complaints: &mut Complaints, topic: Topic, what: &str, now: Instant) {
    let Some(line) = complaints.line(topic, what, now) else {
        return;
    };
    match topic {
        Topic::Program | Topic::Entries | Topic::Controller => tracing::warn!("{line}"),
        _ => tracing::error!("{line}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bridge_with(ports: u32) -> Bridge {
        let port = |number: u32| BridgePort {
            number,
            name: format!("p{number}"),
            mac: [2, 0, 0, 0, 0, 0],
            up: true,
        };
        Bridge {
            index: 2,
            ports: (3..3 + ports).map(port).collect(),
            ..Bridge::default()
        }
    }

    fn up(ports: &[BridgePort]) -> usize {
        ports.iter().filter(|port| port.up).count()
    }

    #[test]
    fn what_is_without_the_program_is_told_as_down() {
        let (mut bridge, mut unusable) = (bridge_with(3), Unusable::default());
        unusable.failed(4, "no clsact", Instant::now());
        let ports = counted(&bridge, &unusable);
        assert_eq!((ports.len(), up(&ports)), (3, 2));
        assert!(!ports[1].up);
        bridge.vlan_filtering = true;
        assert_eq!(up(&counted(&bridge, &unusable)), 0);
    }

    #[test]
    fn after_a_change_only_what_has_changed_is_seen_to() {
        let (before, mut now) = (bridge_with(3).ports, bridge_with(4).ports);
        now[1].up = false;
        let (changed, all) = (See::ToWhatHasChanged(&before), See::ToAll { unasked: true });
        let meant = |see: See<'_>| {
            let ports = now.iter().filter(|port| see.is_meant(port));
            ports.map(|port| port.number).collect::<Vec<_>>()
        };
        assert_eq!((meant(changed), meant(all)), (vec![4, 6], vec![3, 4, 5, 6]));
        assert!(changed.may_have_been(3) && !changed.may_have_been(6) && all.may_have_been(6));
    }

    #[test]
    fn of_too_many_the_first_are_told() {
        let bridge = bridge_with(MOST_PORTS as u32 + 5);
        let ports = counted(&bridge, &Unusable::default());
        assert_eq!(ports, bridge.ports[..MOST_PORTS]);
    }
}
