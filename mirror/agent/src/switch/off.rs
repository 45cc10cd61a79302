//! Takes mirroring off a bridge, by its pins alone, and puts its host back as it was.
//!
//! ```text
//!   no copy is made (config.off)
//!        │   a running agent sees that, tells the controller, and ends
//!        ▼
//!   no agent ── or not in time ──▶ (still attached)
//!        │
//!        ▼
//!   filters, clsact, pins removed
//! ```
//!
//! Connections need no copies: what is missing is sent by the DataNodes themselves.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::attach::{check, detach_all};
use super::maps::SwitchMaps;
use crate::attach::AttachError;
use crate::maps::MapsError;
use crate::pins::{PinError, Pins};

const LOOK: Duration = Duration::from_millis(50);

/// What was taken off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Ports that had the program, or a clsact of an agent.
    pub ports: Vec<String>,
    /// Whether there were pins.
    pub pins: bool,
}

/// Why it is still attached.
#[derive(Debug, thiserror::Error)]
pub enum OffError {
    /// An agent would attach it again.
    #[error("its agent still runs; no copies are made any more: stop it, and run this again")]
    Agent,
    /// The maps can't be used.
    #[error(transparent)]
    Maps(#[from] MapsError),
    /// The pins can't be removed.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// A filter can't be removed.
    #[error(transparent)]
    Attach(#[from] AttachError),
}

/// Waits until the agent has ended, and removes what it has left.
///
/// # Errors
/// It does not end in time, or the system refuses.
pub fn off(pins: &Pins, wait: Duration) -> Result<Removed, OffError> {
    check(pins)?;
    let until = Instant::now() + wait;
    let was_there = pins.folder().exists();
    // No agent starts meanwhile.
    let _lock = was_there.then(|| pins.lock_off()).transpose()?;
    if pins.is_here() {
        SwitchMaps::open(&pins.layout())?.switch_off(true)?;
    }
    while pins.is_locked() {
        if Instant::now() >= until {
            return Err(OffError::Agent);
        }
        sleep(LOOK);
    }
    let removed = Removed {
        ports: detach_all(pins)?,
        pins: was_there,
    };
    pins.remove()?;
    Ok(removed)
}
