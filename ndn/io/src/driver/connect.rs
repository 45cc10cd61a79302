//! Stream faces that we open: connecting, failing, trying again.
//!
//! ```text
//!            timer, name resolved        connected
//!   Waiting ----------------> Connecting -----------> Up
//!      ^                          |                    |
//!      +------- back-off ---------+------ failed ------+   permanent faces
//!                                 +------ failed ------+-> removed   all others
//! ```

use std::io;
use std::time::Duration;

use ndn_forwarder::{CreateFaceError, FaceId, FacePersistency};

use super::slots::{Face, FaceKind, Slot, Stream, StreamOrigin, StreamState};
use super::timers::Timer;
use super::{Core, Driver, random_u64};
use crate::driver::shared::Command;
use crate::face::io::{Side, StreamIo};
use crate::face::stream::StreamFace;
use crate::transport::{FaceType, unknown_type};
use crate::uri::FaceUri;

/// A connection that lasted this long ends the back-off; a peer that takes connections only to
/// close them is tried less and less often.
const STEADY: Duration = Duration::from_secs(5);

impl<C: Core> Driver<C> {
    /// Begins an attempt to connect the waiting face in this slot.
    pub(super) fn connect(&mut self, at: usize) {
        let Some(Slot::Face(Face {
            id,
            kind: FaceKind::Stream(stream),
            ..
        })) = self.slots.get(at)
        else {
            return;
        };
        let StreamOrigin::Connected(connector) = &stream.origin else {
            return;
        };
        let uri = connector.config.uri.clone();
        if !uri.needs_resolving() {
            self.connect_to(at, &uri);
            return;
        }
        // A resolver may take seconds: it is asked on a thread of its own.
        let (id, shared) = (*id, self.shared.clone());
        let asked = std::thread::Builder::new()
            .name("ndn-resolver".to_owned())
            .spawn(move || {
                shared.push(Command::Resolved(id, uri.resolve()));
            });
        if let Err(error) = asked {
            self.stream_failed(at, error);
        }
    }

    /// A resolver has answered.
    pub(super) fn on_resolved(&mut self, id: FaceId, uri: io::Result<FaceUri>) {
        let Some((at, _)) = self.face(id) else { return };
        match uri {
            Ok(uri) => self.connect_to(at, &uri),
            Err(error) => self.stream_failed(at, error),
        }
    }

    fn connect_to(&mut self, at: usize, uri: &FaceUri) {
        let Some(Slot::Face(Face {
            id,
            kind: FaceKind::Stream(stream),
            ..
        })) = self.slots.get_mut(at)
        else {
            return;
        };
        let id = *id;
        let StreamOrigin::Connected(connector) = &mut stream.origin else {
            return;
        };
        connector.attempts += 1;
        let attempt = connector.attempts;
        let connect_timeout = connector.config.connect_timeout;
        let begun = match FaceType::of(uri) {
            Some(FaceType::Stream(transport)) => {
                transport.connect(uri.address(), &connector.config)
            }
            _ => Err(unknown_type()),
        };
        match begun {
            Ok(io) => {
                let fd = io.fd();
                stream.state = StreamState::Connecting(io);
                if let Err(error) = self.register(fd, at) {
                    return self.stream_failed(at, error);
                }
                self.timers.set(
                    self.now + connect_timeout,
                    Timer::ConnectTimeout(id, attempt),
                );
                self.on_connecting(at);
            }
            Err(error) => self.stream_failed(at, error),
        }
    }

    /// The attempt in this slot has come to something.
    pub(super) fn on_connecting(&mut self, at: usize) {
        let Some(Slot::Face(face)) = self.slots.get_mut(at) else {
            return;
        };
        let FaceKind::Stream(stream) = &mut face.kind else {
            return;
        };
        let StreamState::Connecting(io) = &mut stream.state else {
            return;
        };
        match io.connected() {
            None => {}
            Some(Err(error)) => self.stream_failed(at, error),
            Some(Ok(())) => {
                if let StreamState::Connecting(io) =
                    std::mem::replace(&mut stream.state, StreamState::Waiting)
                {
                    self.on_connected(at, io);
                }
            }
        }
    }

    fn on_connected(&mut self, at: usize, io: Box<dyn StreamIo>) {
        let Some(Slot::Face(face)) = self.slots.get_mut(at) else {
            return;
        };
        let id = face.id;
        let FaceKind::Stream(Stream {
            state,
            origin,
            local_fields,
            ..
        }) = &mut face.kind
        else {
            return;
        };
        let StreamOrigin::Connected(connector) = origin else {
            return;
        };
        connector.up_since = Some(self.now);
        let (local, names) = (io.local_uri(), io.peer_names());
        let mut stream = StreamFace::new(
            io,
            Side::Connector,
            &connector.config.link,
            &self.budgets,
            self.lines.clone(),
        );
        stream.link.local_fields = *local_fields;
        *state = StreamState::Up(stream);
        let request = connector.request.take();
        tracing::info!(face = id.0, uri = %connector.config.uri, "face is up");
        self.core.face_up(self.now, id, local, names);
        if let Some(request) = request {
            self.core.face_created(self.now, request, Ok(id));
        }
        self.note_agreement(at);
        // The first event may have been spent on the connecting.
        self.make_ready(at);
        self.make_dirty(at);
    }

    /// The connection, or the attempt at one, in this slot has failed.
    pub(super) fn stream_failed(&mut self, at: usize, error: io::Error) {
        let Some(Slot::Face(face)) = self.slots.get_mut(at) else {
            return;
        };
        let (id, persistency) = (face.id, face.persistency);
        let FaceKind::Stream(stream) = &mut face.kind else {
            return;
        };
        let was_up = stream.is_up();
        stream.past = stream.counters();
        stream.state = StreamState::Waiting;
        let StreamOrigin::Connected(connector) = &mut stream.origin else {
            if self.may_log() {
                tracing::info!(face = id.0, %error, "face closed");
            }
            self.remove_face(at);
            return;
        };
        let uri = connector.config.uri.clone();
        let request = connector.request.take();
        if persistency != FacePersistency::Permanent || request.is_some() {
            let text = format!("cannot connect to {uri}: {error}");
            self.core.face_failed(id, &uri, error, stream.past);
            self.remove_face(at);
            if let Some(request) = request {
                let refused = CreateFaceError {
                    code: 504,
                    text,
                    existing: None,
                };
                self.core.face_created(self.now, request, Err(refused));
            }
            return;
        }
        if was_up {
            stream.past.reconnects += 1;
        }
        // Half to all of the back-off: peers that lost the same router do not return at once.
        let since = connector.up_since.take();
        if since.is_some_and(|since| self.now.saturating_sub(since) >= STEADY) {
            connector.backoff = connector.config.reconnect.0;
        }
        let backoff = connector.backoff;
        connector.backoff = (backoff * 2).min(connector.config.reconnect.1);
        let jitter = random_u64().unwrap_or(0) as f64 / u64::MAX as f64;
        let wait = backoff.mul_f64(0.5 + jitter / 2.0);
        let wait_ms = wait.as_millis();
        if connector.complaints.allows(self.now) {
            tracing::warn!(face = id.0, %uri, %error, wait_ms, "face is down; reconnecting");
        } else {
            tracing::debug!(face = id.0, %uri, %error, wait_ms, "face is still down");
        }
        self.core.face_down(self.now, id);
        self.timers.set(self.now + wait, Timer::Connect(id));
    }
}
