//! A forwarder with its faces, running on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::Duration;

use ndn_forwarder::Forwarder;

use crate::app::App;
use crate::app_handle::AppHandle;
use crate::config::NodeConfig;
use crate::driver::shared::{Command, Shared};
use crate::driver::{Driver, NodeCore, open_all};
use crate::error::{NodeError, StartError};
use crate::memory::packets::PacketBuffers;
use crate::status::{LoopStatus, NodeStatus};
use crate::uri::FaceUri;

/// A running forwarder. Dropping it shuts it down.
pub struct Node {
    /// The first loop: it has listeners, applications and management.
    shared: Arc<Shared>,
    /// Those of other workers.
    others: Vec<Arc<Shared>>,
    threads: Vec<JoinHandle<()>>,
    listening: Vec<FaceUri>,
    packets: Option<PacketBuffers>,
}

/// A thread's name, as far as the system shows it.
fn thread_name(name: &str, worker: usize) -> String {
    match worker {
        0 => name.to_owned(),
        number => {
            let number = format!("-{number}");
            let room = 15 - number.len();
            let name: String = name.chars().take(room).collect();
            name + &number
        }
    }
}

/// Starts a thread for each loop.
fn start<C: NodeCore + Send + 'static>(
    name: &str,
    drivers: Vec<Driver<C>>,
) -> Result<Node, StartError> {
    let mut shared: Vec<_> = drivers.iter().map(Driver::shared).collect();
    let mut node = Node {
        shared: shared.remove(0),
        others: shared,
        threads: Vec::new(),
        listening: drivers[0].listening(),
        packets: drivers[0].packet_memory().map(PacketBuffers),
    };
    for (worker, driver) in drivers.into_iter().enumerate() {
        let builder = std::thread::Builder::new().name(thread_name(name, worker));
        let thread = builder.spawn(move || driver.run());
        node.threads.push(thread.map_err(StartError::Loop)?);
    }
    Ok(node)
}

impl Node {
    /// Checks the settings, opens listeners and faces, and starts the loop.
    ///
    /// Faces that cannot connect yet do not hinder the start: permanent ones keep trying.
    ///
    /// # Errors
    /// Wrong settings (all of them at once), or a listener that cannot be opened.
    pub fn start(config: NodeConfig) -> Result<Self, StartError> {
        config.validate()?;
        let name = config.thread_name.clone();
        open_all(
            config,
            |driver| start(&name, vec![driver]),
            |drivers| start(&name, drivers),
        )?
    }

    /// Where the node listens, in the order of the configuration, with the ports that the
    /// system chose where the configuration said 0.
    pub fn listening(&self) -> &[FaceUri] {
        &self.listening
    }

    /// Where applications make packets that a local forwarder is lent; `None` where the system gives no such memory, or the
    /// configuration asks for none.
    pub fn packet_buffers(&self) -> Option<PacketBuffers> {
        self.packets.clone()
    }

    /// Adds an application as a local face, known by `name` in listings (`internal://name`).
    ///
    /// # Errors
    /// Where the node has stopped, or on a call from the loop's own thread.
    pub fn attach(&self, app: Box<dyn App>, name: &str) -> Result<AppHandle, NodeError> {
        let woken = Arc::new(AtomicBool::new(false));
        let (name, flag) = (name.to_owned(), woken.clone());
        let face = self.shared.ask(|reply| Command::Attach {
            app,
            name,
            woken: flag,
            reply,
        })?;
        Ok(AppHandle::new(face, woken, self.shared.clone()))
    }

    /// Runs `f` on the loop's thread, between packets, and waits for its result. Where there are several workers that is
    /// the first one: it has all faces, routes and strategies, and its part of all else.
    ///
    /// # Errors
    /// Where the node has stopped, or on a call from the loop's own thread.
    pub fn with_forwarder<R: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Forwarder, Duration) -> R + Send + 'static,
    ) -> Result<R, NodeError> {
        self.shared.with_forwarder(f)
    }

    /// Faces with their counters, and the forwarder's own state.
    ///
    /// # Errors
    /// Where the node has stopped, or on a call from the loop's own thread.
    pub fn status(&self) -> Result<NodeStatus, NodeError> {
        let loops = [&self.shared].into_iter().chain(&self.others);
        let told = loops.map(|one| one.ask(Command::Status));
        let told = told.collect::<Result<Vec<_>, _>>()?;
        LoopStatus::sum(told).ok_or(NodeError::Stopped)
    }

    /// Ends the loop, closes all faces, removes Unix sockets, and waits for that.
    pub fn shutdown(mut self) {
        self.stop();
    }

    /// Whether the loop still runs.
    pub fn is_running(&self) -> bool {
        !self.threads.is_empty() && self.threads.iter().all(|thread| !thread.is_finished())
    }

    fn stop(&mut self) {
        for shared in [&self.shared].into_iter().chain(&self.others) {
            shared.push(Command::Shutdown);
        }
        for thread in self.threads.drain(..) {
            if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
                tracing::error!("the node's loop ended in a panic");
            }
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop();
    }
}
