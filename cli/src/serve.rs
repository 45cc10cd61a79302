//! Serving prefixes until stopped: registered at the forwarder, and again at each that comes in
//! its place.
//!
//! ```text
//!   (start) ── connected, registered ──▶ Serving ── over, stopped ──▶ (end)
//!      │                                  │   ▲
//!      │ no forwarder,      forwarder lost │   │ connected, registered
//!      │ refused                          ▼   │
//!      └──▶ (failure)  ◀── refused ──── Waiting ── stopped ──▶ (end)
//! ```

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ndn_io::{App, AppWaker, Client, ClientError};
use ndn_packet::Name;

use crate::args::FaceArg;
use crate::error::{CliError, Exit};
use crate::forwarder::{self, Stop, Target};

/// Shortest and longest wait before the forwarder is tried again; doubled each time, as permanent
/// faces do.
const WAIT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Wakes an application at whichever forwarder it is served, from any thread.
#[derive(Clone, Default)]
pub struct Wake(Arc<Mutex<Option<AppWaker>>>);

impl Wake {
    /// Has [`App::on_wake`] called soon. Where there is no forwarder now, the next one begins with that.
    pub fn wake(&self) {
        let waker = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waker) = &*waker {
            waker.wake();
        }
    }

    /// As a function of its own.
    pub fn caller(&self) -> Arc<dyn Fn() + Send + Sync> {
        let wake = self.clone();
        Arc::new(move || wake.wake())
    }

    fn set(&self, waker: AppWaker) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker);
    }
}

/// What is served, and where.
pub struct Service<'a> {
    /// The forwarder, as the command line has it.
    pub face: &'a FaceArg,
    /// What is registered there.
    pub prefixes: &'a [Name],
    /// Whether a forwarder will do; asked for each before anything is registered.
    pub suits: &'a dyn Fn(&mut Client) -> Result<(), CliError>,
    /// What wakes the application.
    pub wake: Wake,
}

impl Service<'_> {
    /// Registers the prefixes, says so by `registered`, and runs `app` until it is over or
    /// stopped; then the route is taken back. A forwarder that goes away is waited for, which
    /// standard error tells.
    ///
    /// # Errors
    /// There is no forwarder at the start, one refuses a prefix, or one does not suit.
    pub fn run<A: App>(
        &self,
        registered: impl FnOnce(),
        app: &mut A,
        stop: &Stop,
        over: impl Fn(&A) -> bool,
    ) -> Result<(), CliError> {
        let target = Target::find(self.face)?;
        let uri = target.uri.clone();
        let mut client = self.open(&target, None)?;
        // What the application keeps the times of is older than the next client.
        let epoch = client.epoch();
        registered();
        loop {
            let lost = match client.run(app, |app| stop.is_set() || over(app)) {
                Ok(()) => break,
                Err(error @ ClientError::Lost { .. }) => forwarder::client_error(&uri, &error),
                Err(error) => return Err(forwarder::client_error(&uri, &error)),
            };
            eprintln!(
                "trunkline: {}: {}; connecting again",
                lost.thing, lost.cause
            );
            match self.again(&target, stop, epoch)? {
                Some(next) => client = next,
                None => return Ok(()),
            }
            eprintln!(
                "trunkline: forwarder at {uri}: connected again, {} registered",
                self.prefixes
                    .iter()
                    .map(Name::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            );
        }
        // The route goes with the face in any case; this is for those who look in between.
        for prefix in self.prefixes {
            if let Err(error) = client.unregister(prefix) {
                tracing::debug!(%error, "prefix not unregistered");
            }
        }
        let link = client.counters();
        tracing::info!(
            in_bytes = link.in_bytes,
            out_bytes = link.out_bytes,
            queue_drops = link.queue_drops,
            oversize_out = link.oversize_out,
            marks = link.marks,
            "link"
        );
        Ok(())
    }

    /// Waits for a forwarder and registers there; `None` where stopped meanwhile. The clock goes
    /// on from `epoch`.
    fn again(
        &self,
        target: &Target,
        stop: &Stop,
        epoch: Instant,
    ) -> Result<Option<Client>, CliError> {
        let mut wait = WAIT.0;
        loop {
            if stop.wait(wait) {
                return Ok(None);
            }
            match self.open(target, Some(epoch)) {
                Ok(client) => return Ok(Some(client)),
                // Time may heal that.
                Err(error) if matches!(error.exit, Exit::NoForwarder | Exit::NoData) => {
                    tracing::info!(%error, "can't connect to the forwarder; trying again");
                }
                Err(error) => return Err(error),
            }
            wait = (wait * 2).min(WAIT.1);
        }
    }

    fn open(&self, target: &Target, epoch: Option<Instant>) -> Result<Client, CliError> {
        let mut client = target.connect()?;
        if let Some(epoch) = epoch {
            client = client.with_epoch(epoch);
        }
        (self.suits)(&mut client)?;
        for prefix in self.prefixes {
            client
                .register(prefix)
                .map_err(|error| forwarder::client_error(&target.uri, &error))?;
        }
        self.wake.set(client.waker());
        Ok(client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndn_io::{FaceUri, ListenConfig, Node, NodeConfig};
    use ndn_packet::NetPacket;

    /// How long the forwarder is used before it is lost.
    const USED: Duration = Duration::from_millis(200);

    fn forwarder(uri: &FaceUri) -> Node {
        let listeners = vec![ListenConfig::new(uri.clone())];
        let config = NodeConfig {
            listeners,
            ..NodeConfig::default()
        };
        Node::start(config).expect("a forwarder")
    }

    /// Has another forwarder take the place of the first as soon as it is served there.
    struct Changing {
        uri: FaceUri,
        node: Option<Node>,
        /// What its clock said at each of them.
        began: Vec<Duration>,
    }

    impl App for Changing {
        fn on_packet(&mut self, _: Duration, _: NetPacket, _: &mut Vec<NetPacket>) {}

        fn on_wake(&mut self, now: Duration, _: &mut Vec<NetPacket>) {
            self.began.push(now);
            if self.began.len() == 1 {
                std::thread::sleep(USED);
                self.node.take().expect("the first").shutdown();
                self.node = Some(forwarder(&self.uri));
            }
        }
    }

    #[test]
    fn the_clock_goes_on_over_forwarders() {
        let folder = tempfile::tempdir().expect("a folder");
        let face = format!("unix://{}", folder.path().join("fwd.sock").display());
        let uri = FaceUri::parse(&face).expect("a face");
        let mut app = Changing {
            node: Some(forwarder(&uri)),
            uri,
            began: Vec::new(),
        };
        let prefix: Name = "/served".parse().expect("a name");
        let service = Service {
            face: &FaceArg {
                face: Some(face),
                ..FaceArg::default()
            },
            prefixes: &[prefix],
            suits: &|_| Ok(()),
            wake: Wake::default(),
        };
        let stop = Stop::on_signals().expect("signals");
        let is_over = |app: &Changing| app.began.len() == 2;
        service
            .run(|| {}, &mut app, &stop, is_over)
            .expect("served to the end");
        // What an application has kept the time of lies in the past: the first forwarder was used, then one waited for.
        assert!(
            app.began[1] >= app.began[0] + USED + WAIT.0,
            "{:?}",
            app.began
        );
    }
}
