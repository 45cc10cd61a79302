//! How the rest of a program reaches an application in a node's loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ndn_forwarder::FaceId;
use ndn_packet::Name;

use crate::driver::shared::{Command, Shared};
use crate::error::NodeError;

/// Holds an [`App`](crate::App) in its node; dropping it removes the application and its face.
pub struct AppHandle {
    face: FaceId,
    woken: Arc<AtomicBool>,
    shared: Arc<Shared>,
}

/// Wakes one application from any thread; a clone of what [`AppHandle::wake`] does.
#[derive(Clone)]
pub struct AppWaker {
    face: FaceId,
    woken: Arc<AtomicBool>,
    shared: Arc<Shared>,
}

impl AppWaker {
    pub(crate) fn new(face: FaceId, woken: Arc<AtomicBool>, shared: Arc<Shared>) -> Self {
        Self {
            face,
            woken,
            shared,
        }
    }

    /// See [`AppHandle::wake`].
    pub fn wake(&self) {
        wake(self.face, &self.woken, &self.shared);
    }
}

fn wake(face: FaceId, woken: &AtomicBool, shared: &Shared) {
    // One pending wake at a time; the loop clears the flag before it calls `on_wake`, so what
    // was handed over before this call is seen by that one or by a later one.
    if !woken.swap(true, Ordering::AcqRel) {
        shared.push(Command::Wake(face));
    }
}

impl AppHandle {
    pub(crate) fn new(face: FaceId, woken: Arc<AtomicBool>, shared: Arc<Shared>) -> Self {
        Self {
            face,
            woken,
            shared,
        }
    }

    /// Has the loop call [`App::on_wake`](crate::App::on_wake) soon. Cheap; wakes that come before the call are one.
    pub fn wake(&self) {
        wake(self.face, &self.woken, &self.shared);
    }

    /// Something that wakes the application without holding it in the node.
    pub fn waker(&self) -> AppWaker {
        AppWaker {
            face: self.face,
            woken: self.woken.clone(),
            shared: self.shared.clone(),
        }
    }

    /// The face of the application in its node's forwarder.
    pub fn face_id(&self) -> FaceId {
        self.face
    }

    /// Leads Interests under `prefix` to the application. Waits until it is done.
    ///
    /// # Errors
    /// Where the node has stopped, on a call from the loop's own thread, or where the
    /// forwarder takes no such route.
    pub fn register(&self, prefix: &Name) -> Result<(), NodeError> {
        let (prefix, face) = (prefix.clone(), self.face);
        let added = self
            .shared
            .with_forwarder(move |forwarder, _| forwarder.add_route(&prefix, face, 0))?;
        added.map_err(NodeError::Route)
    }

    /// Takes back what [`AppHandle::register`] did; false where there was nothing to take back.
    ///
    /// # Errors
    /// Where the node has stopped, or on a call from the loop's own thread.
    pub fn unregister(&self, prefix: &Name) -> Result<bool, NodeError> {
        let (prefix, face) = (prefix.clone(), self.face);
        self.shared
            .with_forwarder(move |forwarder, _| forwarder.remove_route(&prefix, face))
    }
}

impl Drop for AppHandle {
    fn drop(&mut self) {
        self.shared.push(Command::Detach(self.face));
    }
}
