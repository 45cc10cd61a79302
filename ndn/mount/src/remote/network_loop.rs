//! The loop's side of [`Network`](super::network::Network): begins fetches, hands packets to them, and tells all of their
//! readers when there will be no more.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ndn_endpoint::rdr::Metadata;
use ndn_endpoint::{Fetch, FetchConfig, Manifest, Outcome};
use ndn_io::App;
use ndn_packet::{Data, NetKind, NetPacket};

use super::RemoteError;
use crate::handles::lock;

/// Who reads what a fetch brings. All calls come from the loop, which they must not keep.
pub trait Reader: Send {
    /// A packet of it has come, if not the next in order.
    fn heard(&mut self) {}
    /// The next segment in order; false where it is not what it should be, and must come anew.
    fn take(&mut self, segment: u64, data: &Data) -> bool;
    /// The last segment that is wanted so far; `None` once nobody wants any more of it.
    fn wanted(&self) -> Option<u64>;
    /// It reached its goal, or came to another end.
    fn over(&mut self, result: Result<Fetched, RemoteError>);
}

/// What a fetch has found beside the content.
#[derive(Debug)]
pub struct Fetched {
    pub metadata: Option<Metadata>,
    /// The packet of the metadata.
    pub packet: Option<Data>,
    pub manifest: Option<Arc<Manifest>>,
}

impl From<&Fetch> for Fetched {
    fn from(fetch: &Fetch) -> Self {
        Self {
            metadata: fetch.metadata().cloned(),
            packet: fetch.metadata_packet().cloned(),
            manifest: fetch.manifest().cloned(),
        }
    }
}

/// What calls and the loop share.
#[derive(Default)]
pub struct Orders {
    /// Fetches to be begun.
    pub waiting: Vec<(FetchConfig, Box<dyn Reader>)>,
    /// Why no more are taken.
    pub over: Option<RemoteError>,
}

/// A fetch and who reads what it brings.
struct Running {
    fetch: Fetch,
    reader: Box<dyn Reader>,
}

/// All fetches of a mount; driven by the node's loop.
pub struct NetworkLoop {
    orders: Arc<Mutex<Orders>>,
    running: Vec<Running>,
}

impl Running {
    /// Hands on what has come, sends what may be sent; true when it is over.
    fn advance(&mut self, now: Duration, out: &mut Vec<NetPacket>) -> bool {
        while let Some((segment, data)) = self.fetch.read() {
            if !self.reader.take(segment, &data) {
                self.fetch.reject(segment);
            }
        }
        let Some(wanted) = self.reader.wanted() else {
            return true;
        };
        self.fetch.want_up_to(wanted);
        out.extend(std::iter::from_fn(|| self.fetch.poll_interest(now)));
        let result = match self.fetch.failure() {
            Some(error) => Err(RemoteError::from(&error)),
            None if self.fetch.is_done() => Ok(Fetched::from(&self.fetch)),
            None => return false,
        };
        self.reader.over(result);
        true
    }
}

impl NetworkLoop {
    /// Fetches nothing yet.
    pub fn new(orders: Arc<Mutex<Orders>>) -> Self {
        Self {
            orders,
            running: Vec::new(),
        }
    }

    /// Ends all fetches.
    fn end(&mut self, error: &RemoteError) {
        let waiting = std::mem::take(&mut lock(&self.orders).waiting);
        let ordered = waiting.into_iter().map(|(_, reader)| reader);
        let running = self.running.drain(..).map(|running| running.reader);
        for mut reader in running.chain(ordered) {
            reader.over(Err(error.clone()));
        }
    }

    /// Advances each fetch of which `concerns` says so.
    fn advance(
        &mut self,
        now: Duration,
        out: &mut Vec<NetPacket>,
        mut concerns: impl FnMut(&mut Running) -> bool,
    ) {
        self.running
            .retain_mut(|running| !(concerns(running) && running.advance(now, out)));
    }
}

impl App for NetworkLoop {
    fn on_packet(&mut self, now: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        let marked = packet.is_marked();
        match packet.packet {
            NetKind::Data(data) => self.advance(now, out, |running| {
                let is_its_own = running.fetch.wants(data.name());
                if is_its_own
                    && running.fetch.on_data(now, data.clone(), marked) == Outcome::Accepted
                {
                    running.reader.heard();
                }
                is_its_own
            }),
            NetKind::Nack { reason, interest } => self.advance(now, out, |running| {
                running.fetch.on_nack(now, &interest, reason);
                true
            }),
            NetKind::Interest(_) => {}
        }
    }

    fn on_wake(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        let (waiting, over) = {
            let mut orders = lock(&self.orders);
            match &orders.over {
                Some(error) => (Vec::new(), Some(error.clone())),
                None => (std::mem::take(&mut orders.waiting), None),
            }
        };
        if let Some(error) = over {
            return self.end(&error);
        }
        self.running
            .extend(waiting.into_iter().map(|(config, reader)| Running {
                fetch: Fetch::new(config, now),
                reader,
            }));
        self.advance(now, out, |_| true);
    }

    fn deadline(&self) -> Option<Duration> {
        self.running
            .iter()
            .filter_map(|running| running.fetch.deadline())
            .min()
    }

    fn on_deadline(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        self.advance(now, out, |running| {
            let is_due = running.fetch.deadline().is_some_and(|at| at <= now);
            if is_due {
                running.fetch.on_deadline(now);
            }
            is_due
        });
    }
}

/// The node's loop has ended, whyever: nobody is to wait for what it would have brought.
impl Drop for NetworkLoop {
    fn drop(&mut self) {
        let error = lock(&self.orders)
            .over
            .get_or_insert(RemoteError::Ended)
            .clone();
        self.end(&error);
    }
}
