//! Fetching single Data packets: a JVM thread asks and waits.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ndn_endpoint::{Exchange, ExchangeConfig, VerifyPolicy};
use ndn_io::{App, AppHandle};
use ndn_packet::{Data, Name, NetKind, NetPacket};

use crate::clock::Clock;
use crate::error::{NativeError, Result};
use crate::outbox::Outbox;
use crate::own;

/// Wait before a fetch asks again; doubles each time.
const ASK_AGAIN: Duration = Duration::from_millis(50);
/// A name is taken for absent after this many Nacks: one may come of a face
/// that is just being mended.
const MAX_NACKS: u32 = 2;

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct FetchSettings {
    /// A stale answer out of a cache will not do.
    pub must_be_fresh: bool,
    /// A longer name will do.
    pub can_be_prefix: bool,
    /// The last answer was not genuine: routers are to ask past whoever it came from.
    pub rejected: bool,
    /// How long to wait.
    pub timeout: Duration,
}

#[derive(Default)]
struct Inner {
    exchanges: HashMap<u64, Exchange>,
    next: u64,
    closed: bool,
    fetched: u64,
    failed: u64,
}

#[derive(Default)]
struct Shared {
    inner: Mutex<Inner>,
    done: Condvar,
    outbox: Outbox,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The fetches of a node; all share one face.
pub(crate) struct Fetches {
    shared: Arc<Shared>,
    seed: u64,
    handle: Mutex<Option<(AppHandle, Clock)>>,
}

impl Fetches {
    /// `seed` is that of the nonces.
    pub fn new(seed: u64) -> (Self, Box<dyn App>) {
        let shared = Arc::new(Shared::default());
        let app = Box::new(FetchApp(shared.clone()));
        (
            Fetches {
                shared,
                seed,
                handle: Mutex::new(None),
            },
            app,
        )
    }

    pub fn attached(&self, handle: AppHandle, clock: Clock) {
        self.shared.outbox.attach(handle.waker());
        *self.handle.lock().unwrap_or_else(PoisonError::into_inner) = Some((handle, clock));
    }

    /// Fetches that were answered, and that were not.
    pub fn counters(&self) -> (u64, u64) {
        let inner = self.shared.lock();
        (inner.fetched, inner.failed)
    }

    /// Asks and waits: the packet, or `None` when it was refused or the time
    /// has passed.
    ///
    /// # Errors
    /// When the node closes meanwhile.
    pub fn fetch(&self, name: &Name, settings: FetchSettings) -> Result<Option<Data>> {
        self.exchange(&settings, ExchangeConfig::new(name.clone()))
    }

    /// The same for an Interest with ApplicationParameters, whose digest is the
    /// last component of `name`. The answer may be unsigned: whoever asks sees by
    /// its content who made it.
    ///
    /// # Errors
    /// As there.
    pub fn fetch_with(
        &self,
        name: &Name,
        parameters: Bytes,
        settings: FetchSettings,
    ) -> Result<Option<Data>> {
        let config = ExchangeConfig {
            parameters: Some(parameters),
            verify: VerifyPolicy::None,
            ..ExchangeConfig::new(name.clone())
        };
        self.exchange(&settings, config)
    }

    fn exchange(&self, settings: &FetchSettings, config: ExchangeConfig) -> Result<Option<Data>> {
        let name = config.name.to_string();
        let closed = || NativeError::Closed {
            what: "fetch",
            name: name.clone(),
        };
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        let now = handle
            .as_ref()
            .map(|(_, clock)| clock.now())
            .ok_or_else(closed)?;
        drop(handle);
        let until = Instant::now() + settings.timeout;
        let mut inner = self.shared.lock();
        let id = inner.next;
        inner.next += 1;
        let config = ExchangeConfig {
            can_be_prefix: settings.can_be_prefix,
            must_be_fresh: settings.must_be_fresh,
            rejected: settings.rejected,
            lifetime: settings.timeout.clamp(ASK_AGAIN, Duration::from_secs(4)),
            retry_after: ASK_AGAIN,
            timeout: settings.timeout,
            max_nacks: MAX_NACKS,
            seed: self.seed.wrapping_add(id << 32),
            ..config
        };
        inner.exchanges.insert(id, Exchange::new(config, now));
        self.shared.outbox.wake();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let over = match inner.exchanges.get(&id).map(Exchange::result) {
                Some(None) => left.is_zero(),
                _ => true,
            };
            if inner.closed {
                inner.exchanges.remove(&id);
                return Err(closed());
            }
            if over {
                let exchange = inner.exchanges.remove(&id);
                let found = exchange.as_ref().and_then(Exchange::result);
                let found = found.and_then(|result| result.ok().cloned());
                inner.fetched += u64::from(found.is_some());
                inner.failed += u64::from(found.is_none());
                return Ok(found);
            }
            let waited = self.shared.done.wait_timeout(inner, left);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends all fetches with an error.
    pub fn close(&self) {
        self.shared.lock().closed = true;
        self.shared.done.notify_all();
        drop(
            self.handle
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }
}

struct FetchApp(Arc<Shared>);

impl FetchApp {
    /// Lets every exchange act, sends its Interests, and wakes those who wait
    /// for one that is over.
    fn drive(&self, now: Duration, out: &mut Vec<NetPacket>, mut act: impl FnMut(&mut Exchange)) {
        let mut inner = self.0.lock();
        let mut any_over = false;
        for exchange in inner.exchanges.values_mut() {
            act(exchange);
            out.extend(std::iter::from_fn(|| exchange.poll_interest(now)));
            any_over |= exchange.result().is_some();
        }
        drop(inner);
        if any_over {
            self.0.done.notify_all();
        }
    }
}

impl App for FetchApp {
    fn on_packet(&mut self, now: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        match packet.packet {
            NetKind::Data(data) => {
                // All that is done with it, verifying first, is done with this copy.
                if let Some(data) = own::data(&data) {
                    self.drive(now, out, |exchange| {
                        exchange.on_data(data.clone());
                    });
                }
            }
            NetKind::Nack { reason, interest } => {
                self.drive(now, out, |exchange| {
                    exchange.on_nack(now, &interest, reason)
                });
            }
            NetKind::Interest(_) => {}
        }
    }

    fn on_wake(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        self.drive(now, out, |_| {});
    }

    fn deadline(&self) -> Option<Duration> {
        self.0
            .lock()
            .exchanges
            .values()
            .filter_map(Exchange::deadline)
            .min()
    }

    fn on_deadline(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        self.drive(now, out, |exchange| exchange.on_deadline(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own::testing::Writable;
    use ndn_packet::SigningKey;

    #[test]
    fn what_was_verified_is_what_is_given_out() {
        let name: Name = "/a/32=metadata".parse().unwrap();
        let wire = Data::builder(&name)
            .content(b"facts")
            .sign(&SigningKey::DigestSha256);
        let memory = Writable::holding(&wire);
        let shared = Arc::new(Shared::default());
        let mut exchange = Exchange::new(ExchangeConfig::new(name), Duration::ZERO);
        assert!(exchange.poll_interest(Duration::ZERO).is_some());
        shared.lock().exchanges.insert(0, exchange);
        let packet = NetPacket::data(Data::parse(memory.bytes()).unwrap());
        FetchApp(shared.clone()).on_packet(Duration::ZERO, packet, &mut Vec::new());
        memory.turn();
        let inner = shared.lock();
        let found = inner.exchanges[&0].result().unwrap().unwrap();
        assert_eq!(found.content_slice(), b"facts");
    }
}
