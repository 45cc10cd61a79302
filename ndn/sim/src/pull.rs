//! A consumer on a host of the network: what it asks goes out, what comes goes in, and its timer is kept.

use crate::net::{AppId, Network};
use ndn_endpoint::Consumer;
use ndn_packet::{NetKind, NetPacket};
use std::time::Duration;

/// A consumer and the application that it is.
#[derive(Debug)]
pub(crate) struct Puller {
    pub(crate) app: AppId,
    pub(crate) core: Consumer,
    /// The earliest deadline that is in the queue of events.
    timer: Option<Duration>,
}

impl Puller {
    pub(crate) fn new(app: AppId, core: Consumer) -> Self {
        Puller {
            app,
            core,
            timer: None,
        }
    }

    /// Takes in a packet.
    pub(crate) fn receive(&mut self, now: Duration, packet: NetPacket) {
        let marked = packet.is_marked();
        match packet.packet {
            NetKind::Data(data) => {
                self.core.on_data(now, data, marked);
            }
            NetKind::Nack { reason, interest } => self.core.on_nack(now, &interest, reason),
            NetKind::Interest(_) => {}
        }
    }

    /// Sends what the consumer wants asked, and asks for a timer whose token is the application's number.
    pub(crate) fn ask(&mut self, net: &mut Network<'_>) {
        let now = net.now();
        while let Some(packet) = self.core.poll_interest(now) {
            net.send(self.app, packet);
        }
        let deadline = self.core.deadline();
        let earlier = deadline.filter(|at| self.timer.is_none_or(|timer| *at < timer));
        if let Some(deadline) = earlier {
            self.timer = Some(deadline);
            net.set_timer(deadline, u64::from(self.app.0));
        }
    }

    /// At a timer: whether it was the one that counts.
    pub(crate) fn on_timer(&mut self, now: Duration) -> bool {
        let due = self.timer.is_some_and(|timer| timer <= now);
        if due {
            self.timer = None;
            self.core.on_deadline(now);
        }
        due
    }
}
