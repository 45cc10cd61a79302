//! The running agent of a bridge: one thread asks the controller and one tells it of news, one listens at the ports and
//! looks after the bridge.

use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, thread};

use super::attach::{Attachment, pins};
use super::batch::settled;
use super::bridge::bridge;
use super::events::Events;
use super::frames::{Mac, SNAP};
use super::identity::Identity;
use super::keeper::{Keeper, Outgoing};
use super::maps::{SwitchMaps, wait_for_programs};
use super::metrics;
use super::packets::Packets;
use super::ports::{Ports, VLANS};
use super::session::{Sent, Session};
use super::wire::Answer;
use crate::attach::AttachError;
use crate::complaints::Complaints;
use crate::controller::{Client, ControllerError, Place};
use crate::http::HttpServer;
use crate::maps::MapsError;
use crate::pins::Pins;

/// After an answer without news that came too soon: it is not asked without a pause.
const BREATH: Duration = Duration::from_millis(200);
/// No wait is longer, so that the end is seen.
const LONGEST: Duration = Duration::from_millis(200);
/// Frames that are looked at before anything else is.
const FRAMES: usize = 256;

/// How a bridge's agent is run.
#[derive(Clone, Debug)]
pub struct SwitchOptions {
    /// Where the program and its maps are pinned.
    pub pin: PathBuf,
    /// The bridge.
    pub bridge: String,
    /// What the controller calls this agent.
    pub name: String,
    /// The controller.
    pub controller: Place,
    /// Where `/metrics` is served.
    pub http: Option<SocketAddr>,
}

/// Why there is no agent.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// The bridge can't be served.
    #[error("bridge {name}: {cause}")]
    Bridge {
        /// Its name.
        name: String,
        /// What is in the way, and the way out.
        cause: String,
    },
    /// The program is not at the ports.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The maps can't be used.
    #[error(transparent)]
    Maps(#[from] MapsError),
    /// The controller can't be asked.
    #[error(transparent)]
    Controller(#[from] ControllerError),
    /// Frames can't be read.
    #[error("packet socket: {0}; run as root, or with CAP_NET_RAW")]
    Packets(io::Error),
    /// The address of `/metrics` can't be had.
    #[error(
        "HTTP server at {listen}: {error}; name another address and port, or stop the program that has this one"
    )]
    Http {
        /// Where it was to listen.
        listen: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// No thread can be had.
    #[error("thread: {0}")]
    Thread(io::Error),
}

/// A running agent. Dropped, it stops; the program stays as it is, and copies are made on.
pub struct SwitchAgent {
    shared: Arc<Shared>,
    watch: Option<JoinHandle<()>>,
    _http: Option<HttpServer>,
}

impl SwitchAgent {
    /// Attaches the program to the bridge's ports and starts to ask the controller.
    ///
    /// # Errors
    /// There is no such bridge, another agent has the pins, the kernel refuses, or an address can't be had.
    pub fn start(options: SwitchOptions) -> Result<Self, SwitchError> {
        let failed = |cause: String| SwitchError::Bridge {
            name: options.bridge.clone(),
            cause,
        };
        // Before the bridge is read, so that nothing changes unheard.
        let events = Events::open();
        let found = bridge(&options.bridge).map_err(|error| failed(error.to_string()))?;
        if found.vlan_filtering {
            return Err(failed(String::from(VLANS)));
        }
        let client = Client::of_switch(&options.controller, &options.name)?;
        let packets = Packets::open().map_err(SwitchError::Packets)?;
        let pins = pins(&options.pin);
        let attachment = Attachment::load(pins.clone())?;
        let mut maps = SwitchMaps::open(&pins.layout())?;
        // An `off` that did not come to its end.
        maps.switch_off(false)?;
        let identity = identity(&pins, &options.bridge, &found.mac)?;
        let mut complaints = Complaints::default();
        let ports = Ports::start(options.bridge, found, attachment, &mut complaints)?;
        let session = Session::new(format!("{:016x}", fastrand::u64(..)), identity.dpid);
        let keeper = Keeper::new(ports, maps, session, complaints)?;
        if keeper.entries() > 0 {
            tracing::info!(
                entries = keeper.entries(),
                "took over what an agent before has left"
            );
        }
        let shared = Arc::new(Shared {
            keeper: Mutex::new(keeper),
            turn: Mutex::new(()),
            client,
            packets,
            off: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        });
        let http = match options.http {
            None => None,
            Some(listen) => {
                let shared = shared.clone();
                let page = Arc::new(move || metrics::page(&shared.keeper().work));
                let server = HttpServer::start(listen, page)
                    .map_err(|error| SwitchError::Http { listen, error })?;
                tracing::info!("metrics at http://{}/metrics", server.address());
                Some(server)
            }
        };
        let (tell, news) = sync_channel(1);
        // Those that ask are not waited for: they may be in the middle of a request.
        drop(spawn("poll", &shared, poll)?);
        drop(spawn("tell", &shared, move |shared| told(shared, &news))?);
        let watch = spawn("watch", &shared, move |shared| watch(shared, events, &tell))?;
        Ok(Self {
            shared,
            watch: Some(watch),
            _http: http,
        })
    }

    /// Whether `trunkline mirror switch off` has begun, so that the agent is to end.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.shared.off.load(Ordering::Relaxed)
    }

    /// Whether its threads run.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.watch.as_ref().is_some_and(|t| !t.is_finished())
    }

    /// Ends it. Where the program is taken off, the controller hears of that.
    pub fn stop(mut self) {
        self.end();
        if !self.is_off() {
            tracing::info!("copies are made on as they are");
            return;
        }
        let (request, _) = self.shared.keeper().request(false, true);
        let told: Result<Answer, _> = self.shared.client.end_with(&request, 0);
        match told {
            Ok(_) => tracing::info!("left; no copies are made here any more"),
            Err(error) => tracing::warn!("{error}; it will miss this bridge"),
        }
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if self.watch.take().is_some_and(|t| t.join().is_err()) {
            tracing::error!("thread of the agent has panicked");
        }
    }
}

impl Drop for SwitchAgent {
    fn drop(&mut self) {
        self.end();
    }
}

/// Which switch the bridge is to the controller, which is written down where it was not.
fn identity(pins: &Pins, bridge: &str, mac: &Mac) -> Result<Identity, AttachError> {
    let kept: Option<Identity> = pins.standing();
    let identity = Identity::of(kept.clone(), bridge, mac);
    if kept.as_ref() != Some(&identity) {
        pins.set_standing(&identity)?;
    }
    if !identity.is_of(mac) {
        let dpid = &identity.dpid;
        tracing::info!(
            dpid,
            "the bridge has another Ethernet address now, and stays the switch that it was"
        );
    }
    Ok(identity)
}

struct Shared {
    keeper: Mutex<Keeper>,
    /// Of those who ask, one follows an answer at a time, and none says meanwhile that it was followed.
    turn: Mutex<()>,
    client: Client,
    packets: Packets,
    off: AtomicBool,
    stop: AtomicBool,
}

impl Shared {
    fn keeper(&self) -> MutexGuard<'_, Keeper> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn sleep(&self, time: Duration) {
        let until = Instant::now() + time;
        while !self.is_stopped() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(LONGEST));
        }
    }

    fn send(&self, frames: &[Outgoing]) {
        for (port, frame) in frames {
            if let Err(error) = self.packets.send(*port, frame) {
                // A port that is down, most likely; it is sent again, or asked again.
                tracing::debug!(port, %error, "frame not sent");
            }
        }
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the controller once; whether it has answered with nothing new, before it had to.
    fn ask(&self, wait: bool) -> Result<bool, ControllerError> {
        let (request, sent) = {
            let _turn = self.turn();
            self.keeper().request(wait, false)
        };
        let began = Instant::now();
        let wait = Duration::from_millis(request.wait_ms);
        let answer: Answer = self.client.exchange(&request, request.wait_ms)?;
        if self.is_stopped() {
            return Ok(false);
        }
        let same = (answer.seen, &answer.controller) == (request.seen, &request.controller);
        let is_news = self.follow(&answer, sent);
        Ok(same && !is_news && began.elapsed() < wait / 2)
    }

    /// Has all be as an answer says. Whether the agent had to say or send something by it.
    fn follow(&self, answer: &Answer, sent: Sent) -> bool {
        let _turn = self.turn();
        let following = self.keeper().answered(answer, sent);
        let is_news = following.is_news;
        // Frames are read and ports looked after while programs are waited for.
        let frames = settled(
            &self.keeper,
            Keeper::is_unsettled,
            wait_for_programs,
            |keeper| keeper.make(following),
        );
        self.send(&frames);
        is_news
    }
}

fn spawn(
    name: &str,
    shared: &Arc<Shared>,
    work: impl FnOnce(&Shared) + Send + 'static,
) -> Result<JoinHandle<()>, SwitchError> {
    let shared = shared.clone();
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || work(&shared))
        .map_err(SwitchError::Thread)
}

/// Asks the controller, which answers when there is news.
fn poll(shared: &Shared) {
    while !shared.is_stopped() {
        let pause = match shared.ask(true) {
            Ok(true) => BREATH,
            Ok(false) => Duration::ZERO,
            Err(error) => shared.keeper().unanswered(&error.to_string()),
        };
        shared.sleep(pause);
    }
}

/// Tells the controller at once of what is new, beside a request that waits.
fn told(shared: &Shared, news: &Receiver<()>) {
    while news.recv().is_ok() {
        if let Err(error) = shared.ask(false) {
            // The other thread will hear the same, and wait before it asks again.
            tracing::debug!(%error, "news not told yet");
        }
    }
}

/// Listens at the ports, and looks after the bridge.
fn watch(shared: &Shared, mut events: io::Result<Events>, tell: &SyncSender<()>) {
    let mut buffer = [0; SNAP];
    while !shared.is_stopped() {
        for _ in 0..FRAMES {
            match shared.packets.receive(&mut buffer) {
                Ok(Some((port, frame))) => {
                    let reply = shared.keeper().frame(port, frame);
                    shared.send(reply.as_slice());
                }
                Ok(None) => break,
                Err(error) => {
                    // Of an interface that went down, for one.
                    tracing::debug!(%error, "frame not read");
                    break;
                }
            }
        }
        let stirred = stirred(shared, &mut events);
        let look = shared.keeper().look(stirred);
        shared.send(&look.send);
        if look.off && !shared.off.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "`trunkline mirror switch off` takes the program off this bridge: the agent ends"
            );
        }
        if look.urgent {
            // Where it is being told already, what is new since goes with the next look.
            let _ = tell.try_send(());
        }
        let beside = events.as_ref().ok().map(Events::as_fd);
        shared.packets.wait(beside, look.again.min(LONGEST));
    }
}

/// Whether the kernel says that the bridge has changed. Without its word the bridge is looked at every now and then.
fn stirred(shared: &Shared, events: &mut io::Result<Events>) -> bool {
    let mut keeper = shared.keeper();
    let read = match events {
        Ok(open) => open.read(|changed| keeper.concerns(changed)),
        Err(_) => Events::open().map(|open| {
            *events = Ok(open);
            keeper.hears_again();
            true // what was said before is lost
        }),
    };
    read.unwrap_or_else(|error| {
        keeper.hears_nothing(&error);
        *events = Err(error);
        false
    })
}
