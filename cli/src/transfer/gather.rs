//! Fetching what is small into memory: a forwarder's dataset, a folder's listing.

use std::time::Duration;

use ndn_endpoint::{Fetch, FetchConfig, FetchError};
use ndn_io::{App, Client, ClientError};
use ndn_packet::{NetKind, NetPacket};

/// Why it is not here.
#[derive(Debug)]
pub enum GatherError {
    /// The connection to the forwarder.
    Client(ClientError),
    /// The fetch.
    Fetch(FetchError),
    /// It has more bytes than this.
    TooLong(usize),
}

/// Fetches an object of at most `most` bytes.
///
/// # Errors
/// Why it is not here.
pub fn gather(
    client: &mut Client,
    config: FetchConfig,
    most: usize,
) -> Result<Vec<u8>, GatherError> {
    let mut app = Gathering {
        fetch: Fetch::new(config, client.now()),
        content: Vec::new(),
        most,
    };
    client
        .run(&mut app, |app| {
            app.fetch.is_done() || app.fetch.failure().is_some() || app.is_too_long()
        })
        .map_err(GatherError::Client)?;
    match app.fetch.failure() {
        Some(error) => Err(GatherError::Fetch(error)),
        None if app.is_too_long() => Err(GatherError::TooLong(most)),
        None => Ok(app.content),
    }
}

struct Gathering {
    fetch: Fetch,
    content: Vec<u8>,
    most: usize,
}

impl Gathering {
    fn is_too_long(&self) -> bool {
        self.content.len() > self.most
    }

    fn advance(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        while !self.is_too_long()
            && let Some((_, data)) = self.fetch.read()
        {
            self.content.extend_from_slice(data.content_slice());
        }
        send(&mut self.fetch, now, out);
    }
}

/// Sends what may be sent now.
pub fn send(fetch: &mut Fetch, now: Duration, out: &mut Vec<NetPacket>) {
    out.extend(std::iter::from_fn(|| fetch.poll_interest(now)));
}

/// Hands a packet to a fetch.
pub fn receive(fetch: &mut Fetch, now: Duration, packet: NetPacket) {
    let marked = packet.is_marked();
    match packet.packet {
        NetKind::Data(data) => {
            fetch.on_data(now, data, marked);
        }
        NetKind::Nack { reason, interest } => fetch.on_nack(now, &interest, reason),
        NetKind::Interest(_) => {}
    }
}

impl App for Gathering {
    fn on_packet(&mut self, now: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        receive(&mut self.fetch, now, packet);
        self.advance(now, out);
    }

    fn on_wake(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        self.advance(now, out);
    }

    fn deadline(&self) -> Option<Duration> {
        self.fetch.deadline()
    }

    fn on_deadline(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        self.fetch.on_deadline(now);
        self.advance(now, out);
    }
}
