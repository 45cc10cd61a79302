//! Which retransmissions are not sent on: those that come before a pause has passed, twice as long each time, as NFD's
//! `RetxSuppressionExponential` has it.

use super::settings::StrategySettings;
use crate::state::{Arrival, State};

/// The pauses, nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RetxSuppression {
    min: u64,
    max: u64,
}

impl RetxSuppression {
    pub(crate) fn new(settings: &StrategySettings) -> Self {
        RetxSuppression {
            min: settings.retx_suppression_min,
            max: settings.retx_suppression_max,
        }
    }

    /// The pause in force, when `last` is what was kept of it; 0 is nothing.
    pub(crate) fn pause(&self, last: u64) -> u64 {
        if last == 0 { self.min } else { last }
    }

    /// The pause after this one.
    pub(crate) fn next(&self, pause: u64) -> u64 {
        (pause * 2).min(self.max)
    }

    /// Whether an Interest that is pending already stays here: that of another downstream always (it waits with the
    /// others for what is on its way), that of one which asks again until the pause has passed.
    pub(crate) fn holds_back(&self, fw: &mut State, id: u32, arrival: &Arrival<'_>) -> bool {
        if !arrival.again {
            return true;
        }
        let now = fw.now;
        let entry = fw.pit.get_mut(id);
        let pause = self.pause(entry.suppression);
        let last = entry.outs.iter().map(|r| r.sent).max().unwrap_or(0);
        if now - last < pause {
            return true;
        }
        entry.suppression = self.next(pause);
        entry.retransmissions += 1;
        false
    }
}
