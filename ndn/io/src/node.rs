//! A forwarder with its faces, running on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::Duration;

use ndn_forwarder::Forwarder;

use crate::app::App;
use crate::app_handle::AppHandle;
use crate::config::NodeConfig;
use crate::driver::Driver;
use crate::driver::shared::{Command, Shared};
use crate::error::{NodeError, StartError};
use crate::status::NodeStatus;
use crate::uri::FaceUri;

/// A running forwarder. Dropping it shuts it down.
pub struct Node {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    listening: Vec<FaceUri>,
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
        let (driver, shared) = Driver::open(config)?;
        let listening = driver.listening();
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || driver.run())
            .map_err(StartError::Loop)?;
        Ok(Self {
            shared,
            thread: Some(thread),
            listening,
        })
    }

    /// Where the node listens, in the order of the configuration, with the ports that the
    /// system chose where the configuration said 0.
    pub fn listening(&self) -> &[FaceUri] {
        &self.listening
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

    /// Runs `f` on the loop's thread, between packets, and waits for its result.
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
        self.shared.ask(Command::Status)
    }

    /// Ends the loop, closes all faces, removes Unix sockets, and waits for that.
    pub fn shutdown(mut self) {
        self.stop();
    }

    /// Whether the loop still runs.
    pub fn is_running(&self) -> bool {
        self.thread
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
    }

    fn stop(&mut self) {
        self.shared.push(Command::Shutdown);
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
            && thread.join().is_err()
        {
            tracing::error!("the node's loop ended in a panic");
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop();
    }
}
