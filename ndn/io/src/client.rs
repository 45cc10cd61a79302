//! An application without a forwarder of its own: one face to a forwarder, on this thread.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ndn_forwarder::{CreateFaceError, FaceId, FacePersistency, FaceSpec};
use ndn_packet::{NetPacket, SigningKey};

use crate::app::App;
use crate::app_handle::AppWaker;
use crate::config::{FaceConfig, LinkOptions, NodeConfig};
use crate::driver::{Core, Driver, DriverOptions};
use crate::error::ClientError;
use crate::face::budgets::Budgets;
use crate::face::link::{Link, LinkCounters};
use crate::uri::FaceUri;

/// Bytes that the application's answers to one batch may come to before they are written, so
/// that the other end has them while the rest is answered.
const WRITE_BYTES: usize = 256 * 1024;
/// Bytes of receive buffers; where packets hold on to most of them, they are copied out.
const RECEIVE_BUFFERS: usize = 512 << 20;
/// How often the caller is asked whether it is done while nothing happens.
const ASK_INTERVAL: Duration = Duration::from_millis(100);

/// How a [`Client`] connects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientOptions {
    /// Settings of the face.
    pub link: LinkOptions,
    /// Address that this end binds to.
    pub local_bind: Option<IpAddr>,
    /// How long connecting may take.
    pub connect_timeout: Duration,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            link: LinkOptions::default(),
            local_bind: None,
            connect_timeout: Duration::from_secs(5),
        }
    }
}

/// One face to a forwarder and the loop that drives an [`App`] over it, on the caller's thread.
pub struct Client {
    uri: FaceUri,
    driver: Driver<Inbox>,
    /// While more bytes than this wait to be sent, the application is handed nothing that it
    /// could answer with yet more.
    enough_queued: usize,
    outgoing: Vec<NetPacket>,
    woken: Arc<AtomicBool>,
    /// Signs what it asks the forwarder itself.
    pub(crate) signer: Arc<SigningKey>,
}

/// What the loop has for the application: packets, and how its face stands.
#[derive(Default)]
struct Inbox {
    packets: VecDeque<NetPacket>,
    face: Option<FaceId>,
    up: bool,
    failed: Option<Failed>,
}

/// The face's end.
struct Failed {
    error: io::Error,
    counters: LinkCounters,
}

impl Core for Inbox {
    fn takes_more(&self) -> bool {
        self.packets.is_empty()
    }

    fn receive_batch(&mut self, _: Duration, _: FaceId, packets: &mut Vec<NetPacket>) {
        self.packets.extend(packets.drain(..));
    }

    fn deadline(&self) -> Option<Duration> {
        None
    }

    fn add_face(&mut self, _: Duration, _: FaceSpec) -> FaceId {
        self.up = true;
        *self.face.insert(FaceId::FIRST)
    }

    fn remove_face(&mut self, _: Duration, _: FaceId) {
        self.up = false;
    }

    fn face_up(&mut self, _: Duration, _: FaceId, _: String, _: Vec<String>) {
        self.up = true;
    }

    fn face_takes(&mut self, _: FaceId, _: usize) {}

    fn face_down(&mut self, _: Duration, _: FaceId) {
        self.up = false;
    }

    fn face_failed(&mut self, _: FaceId, _: &FaceUri, error: io::Error, counters: LinkCounters) {
        self.failed = Some(Failed { error, counters });
    }

    fn face_created(&mut self, _: Duration, _: u64, _: Result<FaceId, CreateFaceError>) {}
}

impl Client {
    /// Connects to the forwarder at `uri`, waiting until that is done.
    ///
    /// # Errors
    /// Names the face, what went wrong and what can be done.
    pub fn connect(uri: &FaceUri, options: &ClientOptions) -> Result<Self, ClientError> {
        let face = FaceConfig {
            link: options.link.clone(),
            local_bind: options.local_bind,
            persistency: FacePersistency::Persistent,
            connect_timeout: options.connect_timeout,
            // The address below has no name any more.
            server_name: uri.host_name().map(str::to_owned),
            ..FaceConfig::new(uri.clone())
        };
        NodeConfig {
            faces: vec![face.clone()],
            ..NodeConfig::default()
        }
        .validate()?;
        let failed = |error| ClientError::Connect {
            uri: uri.clone(),
            error,
        };
        let driver = DriverOptions {
            budgets: Budgets::of_one_face(RECEIVE_BUFFERS),
            managed_faces: LinkOptions::default(),
            epoch: Instant::now(),
        };
        let mut driver = Driver::new(Inbox::default(), driver).map_err(ClientError::Loop)?;
        // The caller's thread is the loop's: it may wait for the resolver.
        let place = uri.resolve().map_err(failed)?;
        driver
            .open_face(FaceConfig { uri: place, ..face })
            .map_err(failed)?;
        loop {
            if let Some(end) = driver.core.failed {
                return Err(failed(end.error));
            }
            if driver.core.up {
                break;
            }
            driver.wait(None).map_err(ClientError::Loop)?;
        }
        Ok(Self {
            uri: uri.clone(),
            driver,
            enough_queued: options.link.send_queue_bytes / 2,
            outgoing: Vec::new(),
            woken: Arc::default(),
            signer: Arc::new(SigningKey::DigestSha256),
        })
    }

    /// Where the client is connected to.
    pub fn uri(&self) -> &FaceUri {
        &self.uri
    }

    /// The clock that the application's deadlines are told in: time since the epoch.
    pub fn now(&self) -> Duration {
        self.epoch().elapsed()
    }

    /// Where the clock is zero: at the connecting, unless [`Client::with_epoch`] has set it.
    pub fn epoch(&self) -> Instant {
        self.driver.epoch()
    }

    /// The same client with the clock of another one. For an application that outlives its client, and keeps times that
    /// the next one must not take for the future.
    #[must_use]
    pub fn with_epoch(mut self, epoch: Instant) -> Self {
        self.driver.set_epoch(epoch);
        self
    }

    /// Something that has [`App::on_wake`] called soon, from any thread. A wake-up while nothing runs is made good by the
    /// next [`Client::run`], which begins with that call.
    pub fn waker(&self) -> AppWaker {
        AppWaker::new(FaceId::FIRST, self.woken.clone(), self.driver.shared())
    }

    /// Whether both ends have agreed to jumbo packets. They have had no time to before the
    /// first packets went to and fro.
    pub fn is_jumbo(&self) -> bool {
        let face = self.driver.core.face;
        face.and_then(|id| self.driver.link(id))
            .is_some_and(Link::is_jumbo)
    }

    /// What the face has seen on its link.
    pub fn counters(&self) -> LinkCounters {
        match &self.driver.core {
            Inbox {
                failed: Some(end), ..
            } => end.counters,
            Inbox { face, .. } => face
                .and_then(|id| self.driver.counters(id))
                .unwrap_or_default(),
        }
    }

    /// Waits for the answer to the hello, so that [`Client::is_jumbo`] tells what was agreed.
    /// A forwarder that knows no hello leaves it unanswered: then `wait` passes in vain.
    ///
    /// # Errors
    /// Where the face is lost meanwhile.
    pub fn settle(&mut self, wait: Duration) -> Result<bool, ClientError> {
        let until = self.now() + wait;
        let mut nobody = Nobody { until };
        while !self.is_jumbo() && self.now() < until {
            self.step(&mut nobody, until)?;
        }
        Ok(self.is_jumbo())
    }

    /// Drives the application until `done` says so. It is asked after every batch of packets,
    /// and ten times a second while nothing happens.
    ///
    /// Packets that come faster than the link takes the application's answers wait, here and at
    /// the sender, until it has taken some: an application that answers from a file would
    /// otherwise fill the send queue with one batch of Interests, and lose what is beyond.
    ///
    /// What the application sent when it was done is written out before this returns, as far
    /// as the forwarder takes it at once.
    ///
    /// # Errors
    /// Where the face is lost.
    pub fn run<A: App + ?Sized>(
        &mut self,
        app: &mut A,
        mut done: impl FnMut(&mut A) -> bool,
    ) -> Result<(), ClientError> {
        self.driver.set_epoch(self.epoch());
        app.on_wake(self.driver.now(), &mut self.outgoing);
        loop {
            let now = self.driver.now();
            if app.deadline().is_some_and(|at| at <= now) {
                app.on_deadline(now, &mut self.outgoing);
            }
            if done(app) {
                self.send();
                return self.flush();
            }
            self.step(app, now + ASK_INTERVAL)?;
        }
    }

    /// Waits for something to happen, until `until` or the application's deadline at most, and
    /// hands what has come to the application.
    fn step<A: App + ?Sized>(&mut self, app: &mut A, until: Duration) -> Result<(), ClientError> {
        self.send();
        self.flush()?;
        let until = if self.may_hand_over() {
            Duration::ZERO
        } else {
            app.deadline().map_or(until, |at| at.min(until))
        };
        self.driver.wait(Some(until)).map_err(ClientError::Loop)?;
        self.driver.read_ready(|_| {});
        if self.driver.drop_commands() {
            // Cleared before the call: a wake during it is a new one.
            self.woken.store(false, Ordering::Release);
            app.on_wake(self.driver.now(), &mut self.outgoing);
        }
        while self.may_hand_over()
            && let Some(packet) = self.driver.core.packets.pop_front()
        {
            app.on_packet(self.driver.now(), packet, &mut self.outgoing);
            self.send();
            if self.driver.queued() > WRITE_BYTES {
                self.driver.flush();
            }
        }
        self.flush()
    }

    /// Whether there is a packet for the application, and room for what it may answer.
    fn may_hand_over(&self) -> bool {
        !self.driver.core.packets.is_empty() && self.driver.queued() <= self.enough_queued
    }

    fn send(&mut self) {
        if let Some(face) = self.driver.core.face {
            for packet in self.outgoing.drain(..) {
                self.driver.send(face, packet);
            }
        }
    }

    fn flush(&mut self) -> Result<(), ClientError> {
        self.driver.flush();
        match &self.driver.core.failed {
            None => Ok(()),
            Some(end) => Err(ClientError::Lost {
                uri: self.uri.clone(),
                reason: end.error.to_string(),
            }),
        }
    }
}

/// Stands in while nobody is served yet.
struct Nobody {
    until: Duration,
}

impl App for Nobody {
    fn on_packet(&mut self, _: Duration, _: NetPacket, _: &mut Vec<NetPacket>) {}

    fn deadline(&self) -> Option<Duration> {
        Some(self.until)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixListener;

    use ndn_packet::{Data, Name, SigningKey};

    use super::*;

    /// Takes packets and answers nothing.
    #[derive(Default)]
    struct Taker {
        taken: usize,
    }

    impl App for Taker {
        fn on_packet(&mut self, _: Duration, _: NetPacket, _: &mut Vec<NetPacket>) {
            self.taken += 1;
        }
    }

    /// A socket says once that there is something to read: who leaves some of it for the next
    /// round hears nothing more of it.
    #[test]
    fn a_client_does_not_sleep_on_bytes_that_it_has() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("forwarder");
        let listener = UnixListener::bind(&path).expect("a listener");
        let mut client =
            Client::connect(&FaceUri::unix(path), &ClientOptions::default()).expect("a client");
        let (mut peer, _) = listener.accept().expect("a peer");
        let name: Name = "/a".parse().expect("a name");
        let frame = Data::builder(&name)
            .content(&[7; 2000])
            .sign(&SigningKey::DigestSha256);
        let frames = 20;
        peer.write_all(&frame.repeat(frames))
            .expect("room in the socket");

        client.driver.read_budget = 5000;
        let mut app = Taker::default();
        let mut rounds = 0;
        while app.taken < frames {
            let late = client.now() + Duration::from_secs(30);
            client.step(&mut app, late).expect("a face");
            rounds += 1;
            let left = app.taken < frames;
            let timeout = client.driver.timeout(Some(late));
            assert_eq!(
                timeout == Some(Duration::ZERO),
                left,
                "{timeout:?} after {} of {frames}",
                app.taken
            );
        }
        assert!(rounds > 2, "all was read at once");
    }
}
