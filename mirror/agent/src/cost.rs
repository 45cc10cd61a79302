//! What the programs cost this host: counted by the kernel, where it is told to (`kernel.bpf_stats_enabled`).

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::pins::Pins;
use crate::tc::Hook;

/// Of one program, since it was loaded and as far as the kernel counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Frames that it was asked about; what the stack hands over as one is one, however many segments the NIC makes of it.
    pub frames: u64,
    /// What that took, in nanoseconds.
    pub ns: u64,
}

impl Cost {
    /// The sum of some programs'.
    #[must_use]
    pub fn of_all<'a>(costs: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        for cost in costs {
            sum.frames += cost.frames;
            sum.ns = sum.ns.saturating_add(cost.ns);
        }
        sum
    }

    /// Nanoseconds a frame; `None` before the first.
    #[must_use]
    pub fn ns_per_frame(self) -> Option<u64> {
        self.ns.checked_div(self.frames)
    }

    /// In all.
    #[must_use]
    pub const fn time(self) -> Duration {
        Duration::from_nanos(self.ns)
    }
}

/// By a host's hooks, `ingress` and `egress`, of the programs that are pinned.
#[must_use]
pub fn costs(pins: &Pins) -> BTreeMap<&'static str, Cost> {
    let named = Hook::ALL.into_iter().zip(["ingress", "egress"]);
    named
        .filter_map(|(hook, name)| {
            let program = pins.program(hook)?;
            let cost = Cost {
                frames: program.run_count(),
                ns: u64::try_from(program.run_time().as_nanos()).unwrap_or(u64::MAX),
            };
            Some((name, cost))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_of_all_frames() {
        assert_eq!(Cost::default().ns_per_frame(), None);
        let [few, many] = [(1, 900), (9, 1_100)].map(|(frames, ns)| Cost { frames, ns });
        assert_eq!(Cost::of_all([&few, &many]).ns_per_frame(), Some(200));
    }
}
