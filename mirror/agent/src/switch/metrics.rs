//! The numbers of a bridge's agent in the text format of Prometheus.

use std::fmt::Write as _;

use super::layout::{COUNTER, COUNTERS};

const PREFIX: &str = "trunkline_mirror_switch";

/// What the agent has done, and what there is now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Whether the controller's last answer was one.
    pub controller_up: bool,
    /// Requests that the controller has answered.
    pub polls: u64,
    /// Requests that it has not.
    pub polls_failed: u64,
    /// Entries that are there.
    pub entries: u64,
    /// Entries made or changed.
    pub made: u64,
    /// Entries removed.
    pub removed: u64,
    /// Entries that could not be made.
    pub refused: u64,
    /// Ports of the bridge.
    pub ports: u64,
    /// Ports that the program could not be attached to.
    pub unusable: u64,
    /// Ports that lead to other mirroring switches.
    pub links: u64,
    /// By [`Counter`](super::layout::Counter).
    pub totals: [u64; COUNTERS],
}

/// The page.
#[must_use]
pub fn page(work: &Work) -> String {
    let mut page = String::new();
    let mut one = |name: &str, kind: &str, help: &str, value: u64| {
        let _ = writeln!(
            page,
            "# HELP {PREFIX}_{name} {help}\n# TYPE {PREFIX}_{name} {kind}\n{PREFIX}_{name} {value}"
        );
    };
    let up = work.controller_up.into();
    one("controller_up", "gauge", "1 if the controller answers.", up);
    for (name, help, value) in [
        ("ports", "Ports of the bridge.", work.ports),
        (
            "ports_unusable",
            "Ports that the program could not be attached to; the log says why.",
            work.unusable,
        ),
        (
            "links",
            "Ports that lead to other mirroring switches.",
            work.links,
        ),
        (
            "entries",
            "Segments of pipelines that are copied, by port.",
            work.entries,
        ),
    ] {
        one(name, "gauge", help, value);
    }
    for (name, help, value) in [
        (
            "polls",
            "Requests that the controller has answered.",
            work.polls,
        ),
        (
            "polls_failed",
            "Requests that it has not.",
            work.polls_failed,
        ),
        ("entries_made", "Entries made or changed.", work.made),
        ("entries_removed", "Entries removed.", work.removed),
        (
            "entries_refused",
            "Entries that could not be made.",
            work.refused,
        ),
    ] {
        one(&format!("{name}_total"), "counter", help, value);
    }
    for (name, value) in COUNTER.into_iter().zip(work.totals) {
        let help = "Over all entries; docs/mirror.md says what it counts.";
        one(&format!("{name}_total"), "counter", help, value);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_sample_or_a_comment() {
        let work = Work {
            controller_up: true,
            unusable: 7,
            totals: [1, 2, 3, 4, 5],
            ..Work::default()
        };
        let page = page(&work);
        for line in page.lines() {
            let sound = line.starts_with("# HELP ")
                || line.starts_with("# TYPE ")
                || line
                    .rsplit_once(' ')
                    .is_some_and(|(name, n)| name.starts_with(PREFIX) && n.parse::<u64>().is_ok());
            assert!(sound, "{line}");
        }
        for expected in [
            "trunkline_mirror_switch_controller_up 1",
            "trunkline_mirror_switch_ports_unusable 7",
            "trunkline_mirror_switch_copied_bytes_total 2",
        ] {
            assert!(
                page.lines().any(|line| line == expected),
                "{expected}\n{page}"
            );
        }
    }
}
