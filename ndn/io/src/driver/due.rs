//! What has become due: connecting again, saying hello again, closing the idle.

use std::time::Duration;

use ndn_forwarder::{FaceId, FacePersistency};

use super::slots::{FaceKind, Slot, StreamOrigin, StreamState, UdpOrigin};
use super::timers::Timer;
use super::{Core, Driver};

/// How often an opened UDP face introduces itself: a peer that restarts has forgotten it.
const HELLO_INTERVAL: Duration = Duration::from_secs(5);

/// While there is no answer it does so this often, at first.
const HELLO_AGAIN: Duration = Duration::from_millis(200);
const HASTY_HELLOS: u32 = 10;

impl<C: Core> Driver<C> {
    pub(super) fn on_timer(&mut self, timer: Timer) {
        match timer {
            Timer::Connect(id) => {
                if let Some((at, face)) = self.face(id)
                    && let FaceKind::Stream(stream) = &face.kind
                    && matches!(stream.state, StreamState::Waiting)
                {
                    self.connect(at);
                }
            }
            Timer::ConnectTimeout(id, attempt) => {
                if let Some((at, face)) = self.face(id)
                    && let FaceKind::Stream(stream) = &face.kind
                    && let StreamOrigin::Connected(connector) = &stream.origin
                    && connector.attempts == attempt
                    && matches!(stream.state, StreamState::Connecting(_))
                {
                    self.stream_failed(at, std::io::Error::from(std::io::ErrorKind::TimedOut));
                }
            }
            Timer::Hello(id) => self.say_hello(id),
            Timer::Idle(id) => self.check_idle(id),
            Timer::Link(id) => self.on_link_timer(id),
            Timer::Accept(at) => {
                if let Some(Slot::Listener(listener)) = self.slots.get_mut(at) {
                    listener.accepts_later = false;
                    self.accept(at);
                }
            }
            Timer::Handshakes => self.on_handshake_timer(),
            Timer::Lines => {
                self.lines_timer = false;
                let left_out = self.lines.take_left_out();
                tracing::info!(
                    left_out,
                    "lines about peers that came, went or sent malformed packets were left out"
                );
            }
        }
    }

    /// An opened UDP face introduces itself, now and again: soon where the peer may not have
    /// heard it, then every few seconds.
    pub(super) fn say_hello(&mut self, id: FaceId) {
        let now = self.now;
        let Some((at, face)) = self.face(id) else {
            return;
        };
        let FaceKind::Udp(udp) = &mut face.kind else {
            return;
        };
        if udp.origin != UdpOrigin::Opened || !udp.face.say_hello(true) {
            return;
        }
        udp.hellos += 1;
        let unanswered = !udp.face.link.is_settled() && udp.hellos < HASTY_HELLOS;
        let wait = if unanswered {
            HELLO_AGAIN
        } else {
            HELLO_INTERVAL
        };
        self.make_dirty(at);
        self.timers.set(now + wait, Timer::Hello(id));
    }

    fn check_idle(&mut self, id: FaceId) {
        let now = self.now;
        let Some((at, face)) = self.face(id) else {
            return;
        };
        let FaceKind::Udp(udp) = &face.kind else {
            return;
        };
        if udp.origin != UdpOrigin::OnDemand {
            return;
        }
        let (last_heard, port, on_demand) = (
            udp.last_heard,
            udp.port,
            face.persistency == FacePersistency::OnDemand,
        );
        let idle_timeout = self.idle_timeout(port);
        let due = last_heard + idle_timeout;
        if due > now || !on_demand {
            self.timers
                .set(due.max(now + idle_timeout / 4), Timer::Idle(id));
        } else {
            tracing::debug!(face = id.0, "closed an idle UDP face");
            self.remove_face(at);
        }
    }

    /// Has the face's incomplete packets looked at when the oldest is due.
    pub(super) fn set_link_timer(&mut self, at: usize) {
        let Slot::Face(face) = &mut self.slots[at] else {
            return;
        };
        let due = match &face.kind {
            FaceKind::Udp(udp) => udp.face.link.deadline(),
            _ => face.stream_up().and_then(|stream| stream.deadline()),
        };
        if !face.link_timer
            && let Some(due) = due
        {
            face.link_timer = true;
            self.timers.set(due, Timer::Link(face.id));
        }
    }

    fn on_link_timer(&mut self, id: FaceId) {
        let now = self.now;
        if let Some((at, face)) = self.face(id) {
            face.link_timer = false;
            if let FaceKind::Udp(udp) = &mut face.kind {
                udp.face.link.on_deadline(now);
            } else if let Some(stream) = face.stream_up() {
                stream.on_deadline(now);
            }
            self.set_link_timer(at);
        }
    }
}
