//! What other threads and the loop share: a queue of commands and the means to wake the loop.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread::ThreadId;
use std::time::Duration;

use ndn_forwarder::{FaceId, Forwarder};

use crate::app::App;
use crate::error::NodeError;
use crate::status::LoopStatus;
use crate::uri::FaceUri;

/// Something done to the forwarder on the loop's thread.
pub(crate) type ForwarderCall = Box<dyn FnOnce(&mut Forwarder, Duration) + Send>;

/// Something that the loop does between packets.
pub(crate) enum Command {
    Wake(FaceId),
    Detach(FaceId),
    Attach {
        app: Box<dyn App>,
        name: String,
        woken: Arc<AtomicBool>,
        reply: mpsc::SyncSender<FaceId>,
    },
    WithForwarder(ForwarderCall),
    Resolved(FaceId, io::Result<FaceUri>),
    Status(mpsc::SyncSender<LoopStatus>),
    Shutdown,
}

/// Shared by the loop and everybody who speaks to it.
pub(crate) struct Shared {
    queue: Mutex<Queue>,
    /// The loop sleeps, or is about to: whoever adds a command must wake it. While it is
    /// awake it looks at the queue by itself and nobody pays for a system call.
    sleeping: AtomicBool,
    waker: mio::Waker,
    thread: OnceLock<ThreadId>,
}

#[derive(Default)]
struct Queue {
    commands: Vec<Command>,
    closed: bool,
}

impl Shared {
    pub fn new(waker: mio::Waker) -> Self {
        Self {
            queue: Mutex::default(),
            sleeping: AtomicBool::new(false),
            waker,
            thread: OnceLock::new(),
        }
    }

    /// Adds a command; after the loop's end it is dropped.
    pub fn push(&self, command: Command) {
        {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            if queue.closed {
                return;
            }
            queue.commands.push(command);
        }
        self.wake();
    }

    /// Wakes the loop where it sleeps, or is about to.
    pub fn wake(&self) {
        if self.sleeping.load(Ordering::SeqCst)
            && self.sleeping.swap(false, Ordering::SeqCst)
            && let Err(error) = self.waker.wake()
        {
            tracing::error!(%error, "cannot wake the node's loop");
        }
    }

    /// Moves the waiting commands into `into`.
    pub fn take(&self, into: &mut Vec<Command>) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut queue.commands, into);
    }

    /// The loop is about to sleep; true where it may.
    pub fn may_sleep(&self) -> bool {
        self.sleeping.store(true, Ordering::SeqCst);
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let empty = queue.commands.is_empty();
        if !empty {
            self.sleeping.store(false, Ordering::SeqCst);
        }
        empty
    }

    /// The loop is awake again.
    pub fn awake(&self) {
        self.sleeping.store(false, Ordering::SeqCst);
    }

    /// Called once on the loop's thread.
    pub fn enter_loop(&self) {
        let _ = self.thread.set(std::thread::current().id());
    }

    /// The loop has ended: whoever still waits is told so by a dropped reply channel.
    pub fn close(&self) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.closed = true;
        queue.commands.clear();
    }

    /// Sends a command made around a reply channel and waits for the reply.
    pub fn ask<T>(
        &self,
        make: impl FnOnce(mpsc::SyncSender<T>) -> Command,
    ) -> Result<T, NodeError> {
        if self.thread.get() == Some(&std::thread::current().id()) {
            return Err(NodeError::OnLoopThread);
        }
        let (reply, answer) = mpsc::sync_channel(1);
        self.push(make(reply));
        answer.recv().map_err(|_| NodeError::Stopped)
    }

    /// Runs `f` on the loop's thread and waits for its result.
    pub fn with_forwarder<R: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Forwarder, Duration) -> R + Send + 'static,
    ) -> Result<R, NodeError> {
        self.ask(|reply| {
            Command::WithForwarder(Box::new(move |forwarder, now| {
                // Fails only if nobody waits for the result any more.
                let _ = reply.send(f(forwarder, now));
            }))
        })
    }
}

/// A loop's poll and the shared half that wakes it, under `token`.
pub(crate) fn poll_and_shared(token: mio::Token) -> io::Result<(mio::Poll, Arc<Shared>)> {
    let poll = mio::Poll::new()?;
    let waker = mio::Waker::new(poll.registry(), token)?;
    Ok((poll, Arc::new(Shared::new(waker))))
}
