//! How a keeper follows an answer of the controller: in two steps, between which programs are waited for.

use std::time::Instant;

use super::{Keeper, Outgoing};
use crate::complaints::Topic;
use crate::switch::batch::{Batch, not_a_port};
use crate::switch::layout::{Entry, Key};
use crate::switch::session::{Sent, Taken};
use crate::switch::wire::{Answer, Segments, octets};

/// What is left to be done of an answer, when nothing copies any more by what was removed.
#[derive(Debug, Default)]
pub struct Following {
    batch: Batch,
    /// Ports that lead to other switches, where the answer counts.
    admits: Option<Vec<u32>>,
    /// What is to be sent then.
    send: Vec<Outgoing>,
    /// Whether the answer has the agent say or send something.
    pub is_news: bool,
}

impl Keeper {
    /// Takes an answer to what was sent, and removes from the map what is not to be there as it is. What is left to be
    /// done is for [`make`](Self::make).
    pub fn answered(&mut self, answer: &Answer, sent: Sent) -> Following {
        self.work.polls += 1;
        if !self.work.controller_up {
            self.work.controller_up = true;
            self.neighbours.tell_again();
            if self.complaints.over(Topic::Controller) || self.work.polls == 1 {
                tracing::info!(lease_s = answer.lease_s, "controller answers");
            }
        }
        self.hosts.told(sent.hosts);
        let taken = self.session.answered(answer, sent);
        if answer.announce {
            self.hosts.announce();
            self.neighbours.tell_again();
            self.purged = false;
        }
        let mut following = Following::default();
        if taken == Taken::Anew {
            self.named.clear();
            self.purged = false;
        }
        if taken != Taken::Overtaken {
            following.batch = self.clear(answer);
            following.admits = Some(answer.admits.clone());
        }
        following.send = self.questions(answer);
        if let Some(lldp) = &answer.lldp {
            let frames = lldp
                .iter()
                .filter_map(|of| Some((of.port, octets(&of.frame)?)));
            self.lldp = frames.collect();
            following.send.extend(self.our_lldp());
        }
        following.is_news = answer.announce || !following.send.is_empty();
        following
    }

    /// Whether something was removed since this was asked last, so that programs have to be waited for before anything is
    /// made, and before the controller hears that nothing is copied by it.
    pub fn is_unsettled(&mut self) -> bool {
        self.maps.take_unsettled()
    }

    /// Does what is left of an answer. What is to be sent then.
    pub fn make(&mut self, following: Following) -> Vec<Outgoing> {
        let Following {
            batch,
            admits,
            send,
            ..
        } = following;
        for of in &batch.right {
            self.session.can(of);
        }
        let mut wrong = batch.wrong;
        for (key, entry) in batch.make {
            let of = Segments::of(&key);
            match self.made(&key, entry) {
                Ok(()) => self.session.can(&of),
                Err(why) => wrong.push((of, why)),
            }
        }
        if wrong.is_empty() {
            self.complaints.over(Topic::Entries);
        }
        for (of, why) in wrong {
            if self.session.cannot(of, &why) {
                self.work.refused += 1;
                let (from, to) = (of.connection.source, of.connection.destination);
                let what = format!(
                    "segments from {}:{} to {}:{} are not copied here: {why}",
                    from.address, from.port, to.address, to.port
                );
                self.complain(Topic::Entries, &what);
            }
        }
        if let Some(admits) = admits {
            self.admit(&admits);
        }
        self.count();
        send
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
                if self.ports.has(*port) {
                    self.hosts.asked(*port, now);
                    outgoing.push((*port, frame.clone()));
                }
            }
        }
        outgoing
    }

    /// Removes what an answer has no use for, or has otherwise. What is to be made then.
    fn clear(&mut self, answer: &Answer) -> Batch {
        self.named
            .extend(answer.entries.iter().map(|says| says.of.key()));
        for of in &answer.removed {
            self.named.remove(&of.key());
        }
        let mut strange = Vec::new();
        if answer.purge {
            self.purged = true;
            let named = &self.named;
            let there = self.entries.keys();
            strange.extend(there.filter(|key| !named.contains(key)));
            self.session.wanted(|of| named.contains(&of.key()));
        }
        let batch = Batch::of(answer, &self.entries, &strange);
        for key in &batch.remove {
            self.remove(key);
        }
        batch
    }

    /// Takes marked frames from these ports, which lead to other switches.
    fn admit(&mut self, ports: &[u32]) {
        let mut links = ports.to_vec();
        if !self.purged {
            // A controller that has just started may not have found them all.
            let there = self.maps.ports().unwrap_or_default();
            links.extend(there.iter().filter(|port| !ports.contains(port)));
        }
        self.set_links(links);
    }

    /// The same; those that are no port of the bridge count for nothing.
    pub(super) fn set_links(&mut self, mut links: Vec<u32>) {
        links.retain(|port| self.ports.has(*port));
        if let Err(error) = self.maps.set_ports(&links) {
            self.complain(Topic::Maps, &error.to_string());
        }
        self.work.links = links.len() as u64;
        self.hosts.links(links.iter().copied());
        self.links = links;
    }

    /// Has segments copied no more.
    pub(super) fn remove(&mut self, key: &Key) {
        let of = Segments::of(key);
        self.session.can(&of);
        if let Err(error) = self.maps.remove(key) {
            // It is there still, and known.
            self.complain(Topic::Maps, &error.to_string());
        } else if self.entries.remove(key).is_some() {
            tracing::debug!(?of, "entry removed");
            self.work.removed += 1;
        }
    }

    /// Makes an entry that is not there. Why it can't be, otherwise.
    fn made(&mut self, key: &Key, entry: Entry) -> Result<(), String> {
        if let Some(port) = not_a_port(key, &entry, |number| self.ports.has(number)) {
            return Err(format!("interface {port} is no port of this bridge"));
        }
        self.maps
            .set(key, &entry)
            .map_err(|error| match error.raw_os_error() {
                Some(libc::E2BIG) => String::from("no room for more entries at this bridge"),
                _ => error.to_string(),
            })?;
        tracing::debug!(of = ?Segments::of(key), copies = entry.used().len(), "entry made");
        self.entries.insert(*key, entry);
        self.work.made += 1;
        Ok(())
    }
}
