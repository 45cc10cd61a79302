//! The running agent: one thread asks the controller, one looks after the maps.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, thread};

use crate::attach::{Adopted, AttachError, Attachment};
use crate::controller::{Client, ControllerError, Place};
use crate::http::HttpServer;
use crate::keeper::Keeper;
use crate::layout::Config;
use crate::maps::{Maps, MapsError};
use crate::metrics;
use crate::pins::{PinError, Pins};
use crate::session::Session;
use crate::sockets::Sockets;
use crate::standing::{Asked, Ledger};
use crate::wire::{Answer, Request};

/// After an answer without news that came too soon: it is not asked without a pause.
const BREATH: Duration = Duration::from_millis(200);
/// How long the controller may take to have copies stopped when the agent leaves.
const LEAVE: Duration = Duration::from_secs(5);

/// How an agent is run.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// Where programs and maps are pinned.
    pub pin: PathBuf,
    /// The interfaces by which DataNodes are reached.
    pub interfaces: Vec<String>,
    /// The DataNodes' data transfer ports.
    pub data_ports: Vec<u16>,
    /// A retransmission that follows sooner on the same segment's last one is left out.
    pub repeat: Duration,
    /// An entry that is not listed, and of which nothing was seen for so long, is taken out.
    pub forget: Duration,
    /// What the controller calls this agent.
    pub name: String,
    /// Where these were read, for whoever takes the programs off when the agent has ended.
    pub config: Option<PathBuf>,
    /// The controller.
    pub controller: Place,
    /// Where `/metrics` is served.
    pub http: Option<SocketAddr>,
}

/// Why there is no agent.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The programs are not at the interfaces.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The maps can't be used.
    #[error(transparent)]
    Maps(#[from] MapsError),
    /// The controller can't be asked.
    #[error(transparent)]
    Controller(#[from] ControllerError),
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

/// An agent whose programs are loaded and not attached yet.
pub struct Loaded {
    options: AgentOptions,
    attachment: Attachment,
    sockets: Sockets,
    adopted: Adopted,
}

impl Loaded {
    /// Loads the programs over the pinned maps.
    ///
    /// # Errors
    /// The pins can't be used, another agent has them, or the kernel refuses.
    pub fn new(options: AgentOptions) -> Result<Self, AgentError> {
        let pins = Pins::at(&options.pin);
        let (attachment, adopted) = Attachment::load(pins, options.interfaces.clone())?;
        Ok(Self {
            options,
            attachment,
            sockets: Sockets::open(),
            adopted,
        })
    }

    /// Attaches the programs and starts to ask the controller. Another release's programs, whose entries these can't
    /// read, keep the connections that they have, behind these; `replace` takes them off at once, which may break those.
    ///
    /// # Errors
    /// There is no such interface, the kernel refuses, or an address can't be had.
    pub fn start(mut self, replace: bool) -> Result<Agent, AgentError> {
        let options = self.options;
        let client = Client::new(&options.controller, &options.name)?;
        let mut maps = Maps::open(&Pins::at(&options.pin).layout())?;
        let others = match self.attachment.others_living(&mut self.sockets) {
            _ if replace => 0,
            Some(living) => living.len(),
            None => return Err(AttachError::Unreadable { path: options.pin }.into()),
        };
        if others == 0 {
            self.attachment.forget_others()?;
        }
        let repeat_ms = u32::try_from(options.repeat.as_millis()).unwrap_or(u32::MAX);
        // Before a packet is seen: what is not recorded of a connection's beginning is never known.
        maps.set_config(
            Config {
                repeat_ms,
                before: u32::from(others != 0),
                ..Config::default()
            }
            .with_ports(&options.data_ports),
        )?;
        if self.adopted == Adopted::Maps {
            let flows = maps.snd()?.len() + maps.rcv()?.len();
            tracing::info!(flows, "took over what an agent before has left");
        }
        for change in self.attachment.ensure()? {
            tracing::info!("{change}");
        }
        if others != 0 {
            tracing::warn!(
                connections = others,
                "programs of another release keep the connections that they have, until these have ended; new ones \
                 are this one's"
            );
        }
        let run = format!("{:016x}", fastrand::u64(..));
        let pins = Pins::at(&options.pin);
        let ledger = Ledger::new(pins, options.name, run.clone(), options.config);
        let mut keeper = Keeper::new(
            maps,
            self.attachment,
            self.sockets,
            options.interfaces.clone(),
            Session::new(run),
            ledger,
            options.forget,
        );
        // Begun since the lock was looked for: what was set above has it undone.
        if keeper.heed_off() {
            return Err(AttachError::from(PinError::GoingOff { path: options.pin }).into());
        }
        let shared = Arc::new(Shared {
            keeper: Mutex::new(keeper),
            client,
            ends: AtomicBool::new(false),
            signals: Mutex::new(Signals::default()),
            signal: Condvar::new(),
        });
        let http = match options.http {
            None => None,
            Some(listen) => {
                let shared = shared.clone();
                let page = Arc::new(move || {
                    let mut keeper = shared.keeper();
                    let snapshot = keeper.snapshot();
                    metrics::page(&keeper.work, snapshot.as_ref(), &keeper.costs())
                });
                let server = HttpServer::start(listen, page)
                    .map_err(|error| AgentError::Http { listen, error })?;
                tracing::info!("metrics at http://{}/metrics", server.address());
                Some(server)
            }
        };
        let spawn = |name: &str, work: fn(&Shared)| {
            let shared = shared.clone();
            thread::Builder::new()
                .name(name.to_owned())
                .spawn(move || work(&shared))
                .map_err(AgentError::Thread)
        };
        // The one that asks is not waited for: it may be in the middle of a long poll.
        drop(spawn("poll", poll)?);
        let watch = spawn("watch", watch)?;
        Ok(Agent {
            shared,
            watch: Some(watch),
            _http: http,
        })
    }
}

/// A running agent. Dropped, it stops; programs and maps stay as they are, and flows go on.
pub struct Agent {
    shared: Arc<Shared>,
    watch: Option<JoinHandle<()>>,
    _http: Option<HttpServer>,
}

impl Agent {
    /// Whether it is to end: `trunkline mirror off` has begun, or the controller hears this run no more.
    #[must_use]
    pub fn is_to_end(&self) -> bool {
        self.shared.ends.load(Ordering::Relaxed)
    }

    /// Whether its threads run.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.watch.as_ref().is_some_and(|t| !t.is_finished())
    }

    /// Ends it: the controller is told first, and has copies stopped.
    pub fn stop(mut self) {
        self.end();
        let request = Request {
            wait_ms: LEAVE.as_millis() as u64,
            ..self.shared.keeper().leave()
        };
        let outcome = self.shared.client.leave(&request);
        match &outcome {
            Ok(answer) if answer.stopped == Some(true) => {
                tracing::info!("left; flows go on without copies");
            }
            Ok(_) => tracing::warn!(
                "left; not all switches have confirmed yet that they send no more copies"
            ),
            Err(error) => tracing::warn!("{error}; flows go on as they are"),
        }
        if let Ok(answer) = outcome {
            self.shared.keeper().left(answer.stopped == Some(true));
        }
    }

    fn end(&mut self) {
        self.shared.signals().stop = true;
        self.shared.signal.notify_all();
        if self.watch.take().is_some_and(|t| t.join().is_err()) {
            tracing::error!("thread of the agent has panicked");
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.end();
    }
}

#[derive(Default)]
struct Signals {
    stop: bool,
    wake: bool,
}

struct Shared {
    keeper: Mutex<Keeper>,
    client: Client,
    ends: AtomicBool,
    signals: Mutex<Signals>,
    signal: Condvar,
}

impl Shared {
    fn keeper(&self) -> MutexGuard<'_, Keeper> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signals(&self) -> MutexGuard<'_, Signals> {
        self.signals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped(&self) -> bool {
        self.signals().stop
    }

    /// Whether it was stopped meanwhile.
    fn sleep(&self, time: Duration) -> bool {
        let waited = self
            .signal
            .wait_timeout_while(self.signals(), time, |signals| !signals.stop);
        waited.unwrap_or_else(PoisonError::into_inner).0.stop
    }

    /// The same, until it is woken.
    fn sleep_or_wake(&self, time: Duration) -> bool {
        let waited = self
            .signal
            .wait_timeout_while(self.signals(), time, |signals| {
                !signals.stop && !signals.wake
            });
        let mut signals = waited.unwrap_or_else(PoisonError::into_inner).0;
        signals.wake = false;
        signals.stop
    }

    /// What comes of an answer, or of none; how long to wait before the controller is asked again.
    fn heard(&self, asked: Asked, outcome: Result<Answer, ControllerError>) -> Duration {
        match outcome {
            Ok(answer) => {
                self.keeper().answered(asked, answer);
                Duration::ZERO
            }
            Err(error) => {
                if error.left && !self.ends.swap(true, Ordering::Relaxed) {
                    tracing::warn!("{error}; the agent ends");
                }
                self.keeper().unanswered(asked, &error)
            }
        }
    }

    fn wake(&self) {
        self.signals().wake = true;
        self.signal.notify_all();
    }
}

/// Asks the controller, which answers when there is news.
fn poll(shared: &Shared) {
    while !shared.is_stopped() && !shared.ends.load(Ordering::Relaxed) {
        let (request, asked) = shared.keeper().ask(true);
        let began = Instant::now();
        let outcome = shared.client.ask(&request);
        if shared.is_stopped() {
            let counts = outcome.as_ref().map_or_else(|error| error.counts, |_| true);
            return shared.keeper().asked(asked, counts);
        }
        let is_same = outcome.as_ref().is_ok_and(|answer| {
            (answer.seen, &answer.controller) == (request.seen, &request.controller)
        });
        let is_soon = began.elapsed().as_millis() < u128::from(request.wait_ms) / 2;
        let is_answered = outcome.is_ok();
        let mut pause = shared.heard(asked, outcome);
        if is_answered {
            shared.wake();
        }
        if is_same && is_soon {
            pause = BREATH;
        }
        if !pause.is_zero() && shared.sleep(pause) {
            return;
        }
    }
}

/// Looks after the maps, and has the controller hear at once of what others wait for.
fn watch(shared: &Shared) {
    loop {
        let look = shared.keeper().look();
        if look.off && !shared.ends.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "`trunkline mirror off` takes the programs off this host: the agent ends"
            );
        }
        if look.urgent && !shared.ends.load(Ordering::Relaxed) {
            let (request, asked) = shared.keeper().ask(false);
            let outcome = shared.client.ask(&request);
            // If there was none the other thread will hear the same, and wait before it asks again.
            shared.heard(asked, outcome);
        }
        if shared.sleep_or_wake(look.again.max(Duration::from_millis(1))) {
            return;
        }
    }
}
