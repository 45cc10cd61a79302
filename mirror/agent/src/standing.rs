//! How long the controller may have copies sent to this host: written down in the pins, so that `trunkline mirror off`
//! knows it of an agent that has ended, however it did.
//!
//! ```text
//!                  asked: until = now + lease
//!   (nothing) ──────────────────────────────▶ counted on until … ──leave confirmed──▶ stopped
//!                                               ▲          │                             │
//!                                               └──────────┴──────── asked ──────────────┘
//! ```

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::pins::{PinError, Pins};

/// A controller's lease as long as it has not said its own.
pub const LEASE: Duration = Duration::from_secs(20);
/// From a request's beginning to when the controller has it, and from the lease's end to the last copy.
const MARGIN: Duration = Duration::from_secs(3);
/// What is written may be so much older than it could be: it is not written with each request.
const COARSE: Duration = Duration::from_secs(1);

/// What is written down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// What the controller calls the agent.
    pub name: String,
    /// This run of it.
    pub run: String,
    /// Where its settings were read: who the controller is, and where its token lies.
    pub config: Option<PathBuf>,
    /// Where copies go to.
    pub addresses: Vec<IpAddr>,
    /// The controller's lease, in milliseconds.
    pub lease_ms: u64,
    /// Until when the controller may count on the agent, in milliseconds of the machine's time since its start; 0 if it
    /// never has.
    pub until_ms: u64,
    /// Switches have confirmed that they send no copies.
    pub stopped: bool,
}

impl Standing {
    /// How long copies may still be sent to this host, as far as is known.
    #[must_use]
    pub fn left(&self) -> Duration {
        if self.stopped {
            return Duration::ZERO;
        }
        Duration::from_millis(self.until_ms.saturating_sub(now_ms()))
    }

    /// Whether a controller has ever counted on the agent, and not confirmed since that copies have ended.
    #[must_use]
    pub fn counts(&self) -> bool {
        !self.stopped && self.until_ms != 0
    }

    /// The controller's lease.
    #[must_use]
    pub fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms)
    }
}

/// The agent's own, kept up to date in its pins.
pub struct Ledger {
    pins: Pins,
    now: Standing,
    written: Option<Standing>,
    /// Until when the controller may count on an agent before this one.
    before_ms: u64,
    /// When the last request went, and the last of those that have ended and may count; 0 for none.
    asked_ms: u64,
    counted_ms: u64,
    on_their_way: u32,
}

/// A request on its way.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    at_ms: u64,
}

impl Ledger {
    /// A run that has asked nothing yet. What an agent before it has left holds as long as that was to.
    #[must_use]
    pub fn new(pins: Pins, name: String, run: String, config: Option<PathBuf>) -> Self {
        let before: Standing = pins.standing().unwrap_or_default();
        Self {
            pins,
            now: Standing {
                name,
                run,
                config,
                addresses: Vec::new(),
                lease_ms: millis(LEASE),
                until_ms: 0,
                stopped: false,
            },
            written: None,
            before_ms: if before.stopped { 0 } else { before.until_ms },
            asked_ms: 0,
            counted_ms: 0,
            on_their_way: 0,
        }
    }

    /// A request that is no leave is about to go. What to say when it has ended, and whether the pins could be written.
    pub fn asks(&mut self, addresses: &[IpAddr]) -> (Asked, Result<(), PinError>) {
        let at_ms = now_ms();
        self.on_their_way += 1;
        self.asked_ms = at_ms;
        self.now.addresses = addresses.to_vec();
        self.now.stopped = false;
        (Asked { at_ms }, self.write())
    }

    /// It has ended. `counts`: the controller may have taken it for a sign of life.
    ///
    /// # Errors
    /// The pins can't be written.
    pub fn asked(&mut self, asked: Asked, counts: bool) -> Result<(), PinError> {
        self.on_their_way -= 1;
        if counts {
            self.counted_ms = self.counted_ms.max(asked.at_ms);
        }
        self.write()
    }

    /// The controller's lease is this.
    ///
    /// # Errors
    /// The pins can't be written.
    pub fn lease(&mut self, lease: Duration) -> Result<(), PinError> {
        self.now.lease_ms = millis(lease);
        self.write()
    }

    /// The controller has answered that the agent has left.
    ///
    /// # Errors
    /// The pins can't be written.
    pub fn left(&mut self, stopped: bool) -> Result<(), PinError> {
        self.now.stopped = stopped;
        self.write()
    }

    fn write(&mut self) -> Result<(), PinError> {
        let at_ms = match self.on_their_way {
            0 => self.counted_ms,
            _ => self.asked_ms,
        };
        let own_ms = match at_ms {
            0 => 0,
            at_ms => at_ms + self.now.lease_ms + millis(MARGIN),
        };
        self.now.until_ms = own_ms.max(self.before_ms);
        if let Some(written) = &self.written {
            let rounded = Standing {
                until_ms: written.until_ms,
                ..self.now.clone()
            };
            let apart_ms = written.until_ms.abs_diff(self.now.until_ms);
            if rounded == *written && apart_ms < millis(COARSE) {
                return Ok(());
            }
        }
        self.pins.set_standing(&self.now)?;
        self.written = Some(self.now.clone());
        Ok(())
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The machine's time since its start, while it slept too.
fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(folder: &std::path::Path) -> Ledger {
        let (name, run) = (String::from("dn1"), String::from("r"));
        Ledger::new(Pins::at(folder), name, run, None)
    }

    fn written(ledger: &Ledger) -> Standing {
        ledger.pins.standing::<Standing>().expect("written down")
    }

    #[test]
    fn the_lease_counts_from_the_last_request_that_the_controller_may_have() {
        let folder = tempfile::tempdir().expect("a folder");
        let here = [IpAddr::from([10, 0, 0, 1])];
        let mut ledger = ledger(folder.path());
        assert_eq!(ledger.pins.standing::<Standing>(), None);
        let (asked, done) = ledger.asks(&here);
        done.expect("written");
        let first = written(&ledger);
        assert_eq!((first.name.as_str(), first.run.as_str()), ("dn1", "r"));
        assert!(first.left() > LEASE && first.left() <= LEASE + MARGIN);
        // Nobody was there to hear it.
        ledger.asked(asked, false).expect("written");
        assert!(!written(&ledger).counts());
        let (asked, _) = ledger.asks(&here);
        ledger.asked(asked, true).expect("written");
        for seconds in [3600, 1] {
            let lease = Duration::from_secs(seconds);
            ledger.lease(lease).expect("written");
            let left = written(&ledger).left();
            assert!(left > lease && left <= lease + MARGIN, "{left:?}");
        }
        // The one that was heard still counts.
        let (asked, _) = ledger.asks(&here);
        ledger.asked(asked, false).expect("written");
        assert!(written(&ledger).counts());
    }

    #[test]
    fn one_that_is_not_heard_does_not_hide_another_that_may_be() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut ledger = ledger(folder.path());
        let ((long, _), (short, _)) = (ledger.asks(&[]), ledger.asks(&[]));
        ledger.asked(short, false).expect("written");
        assert!(!written(&ledger).left().is_zero());
        ledger.asked(long, true).expect("written");
        assert!(!written(&ledger).left().is_zero());
    }

    #[test]
    fn the_leave_is_kept_and_a_later_agent_begins_where_one_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut first = ledger(folder.path());
        let (asked, _) = first.asks(&[]);
        first.asked(asked, true).expect("written");
        let mut second = ledger(folder.path());
        let (asked, _) = second.asks(&[]);
        second.asked(asked, false).expect("written");
        assert!(
            !written(&second).left().is_zero(),
            "what the first one has said holds"
        );
        second.left(true).expect("written");
        assert_eq!(written(&second).left(), Duration::ZERO);
        let mut third = ledger(folder.path());
        let (asked, _) = third.asks(&[]);
        assert!(!written(&third).left().is_zero());
        third.asked(asked, false).expect("written");
        assert!(!written(&third).counts());
    }
}
