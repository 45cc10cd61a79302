//! The agent's numbers in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::cost::Cost;
use crate::status::{Side, Snapshot};
use crate::words::{COUNTER, RCV_STATE, REASON, SND_STATE};

const PREFIX: &str = "trunkline_mirror_host";

/// What the agent itself has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Whether the controller's last answer was one.
    pub controller_up: bool,
    /// Requests that the controller has answered.
    pub polls: u64,
    /// Requests that it has not.
    pub polls_failed: u64,
    /// Flows that the controller lists.
    pub listed: u64,
    /// Entries made.
    pub added: u64,
    /// Entries taken out.
    pub removed: u64,
    /// Flows that could not be announced to the kernel.
    pub refused: u64,
    /// Connections that another release's programs have.
    pub others: u64,
}

/// The page.
#[must_use]
pub fn page(
    work: &Work,
    snapshot: Option<&Snapshot>,
    costs: &BTreeMap<&'static str, Cost>,
) -> String {
    let mut page = String::new();
    let mut one = |name: &str, kind: &str, help: &str, value: u64| {
        head(&mut page, name, kind, help);
        let _ = writeln!(page, "{PREFIX}_{name} {value}");
    };
    one(
        "controller_up",
        "gauge",
        "1 if the controller answers.",
        work.controller_up.into(),
    );
    one(
        "polls_total",
        "counter",
        "Requests that the controller has answered.",
        work.polls,
    );
    one(
        "polls_failed_total",
        "counter",
        "Requests that it has not.",
        work.polls_failed,
    );
    one(
        "flows_listed",
        "gauge",
        "Pipelines of this host that the controller lists.",
        work.listed,
    );
    one(
        "entries_added_total",
        "counter",
        "Entries of flows made.",
        work.added,
    );
    one(
        "entries_removed_total",
        "counter",
        "Entries of flows taken out.",
        work.removed,
    );
    one(
        "refused_total",
        "counter",
        "Flows that could not be announced to the kernel.",
        work.refused,
    );
    one(
        "other_release_flows",
        "gauge",
        "Connections that the programs of another release have, behind these.",
        work.others,
    );
    cost(&mut page, costs);
    if let Some(snapshot) = snapshot {
        maps(&mut page, snapshot);
    }
    page
}

fn cost(page: &mut String, costs: &BTreeMap<&'static str, Cost>) {
    head(
        page,
        "program_frames_total",
        "counter",
        "Frames that the programs were asked about while kernel.bpf_stats_enabled was 1.",
    );
    for (hook, cost) in costs {
        let _ = writeln!(
            page,
            "{PREFIX}_program_frames_total{{hook=\"{hook}\"}} {}",
            cost.frames
        );
    }
    head(
        page,
        "program_seconds_total",
        "counter",
        "What these frames took.",
    );
    for (hook, cost) in costs {
        let _ = writeln!(
            page,
            "{PREFIX}_program_seconds_total{{hook=\"{hook}\"}} {:.9}",
            cost.time().as_secs_f64()
        );
    }
}

fn maps(page: &mut String, snapshot: &Snapshot) {
    head(
        page,
        "flows",
        "gauge",
        "Connections with an entry, by state.",
    );
    let mut states: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    states.extend(SND_STATE.map(|state| (("send", state), 0)));
    states.extend(RCV_STATE.map(|state| (("receive", state), 0)));
    for flow in &snapshot.flows {
        let side = match flow.side {
            Side::Send => "send",
            Side::Receive => "receive",
        };
        *states.entry((side, flow.state)).or_default() += 1;
    }
    for ((side, state), flows) in states {
        let _ = writeln!(
            page,
            "{PREFIX}_flows{{side=\"{side}\",state=\"{state}\"}} {flows}"
        );
    }
    head(
        page,
        "fallbacks_total",
        "counter",
        "Flows that fell back to real sending, by reason.",
    );
    for (reason, flows) in REASON.into_iter().zip(snapshot.fallbacks).skip(1) {
        let _ = writeln!(
            page,
            "{PREFIX}_fallbacks_total{{reason=\"{reason}\"}} {flows}"
        );
    }
    for (name, value) in COUNTER.into_iter().zip(snapshot.totals) {
        let name = format!("{name}_total");
        head(
            page,
            &name,
            "counter",
            "Over all flows; docs/mirror.md says what it counts.",
        );
        let _ = writeln!(page, "{PREFIX}_{name} {value}");
    }
}

fn head(page: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(
        page,
        "# HELP {PREFIX}_{name} {help}\n# TYPE {PREFIX}_{name} {kind}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{COUNTERS, REASONS};

    #[test]
    fn each_line_is_a_sample_or_a_comment() {
        let mut snapshot = Snapshot {
            flows: Vec::new(),
            totals: [0; COUNTERS],
            fallbacks: [0; REASONS],
        };
        snapshot.totals[9] = 4711;
        snapshot.fallbacks[2] = 3;
        let work = Work {
            controller_up: true,
            ..Work::default()
        };
        let cost = Cost {
            frames: 12,
            ns: 3_400,
        };
        let page = page(&work, Some(&snapshot), &[("ingress", cost)].into());
        for line in page.lines() {
            let sound = line.starts_with("# HELP ")
                || line.starts_with("# TYPE ")
                || line
                    .rsplit_once(' ')
                    .is_some_and(|(name, n)| name.starts_with(PREFIX) && n.parse::<f64>().is_ok());
            assert!(sound, "{line}");
        }
        for expected in [
            "trunkline_mirror_host_controller_up 1",
            "trunkline_mirror_host_virtual_bytes_total 4711",
            "trunkline_mirror_host_fallbacks_total{reason=\"late\"} 3",
            "trunkline_mirror_host_flows{side=\"send\",state=\"virtual\"} 0",
            "trunkline_mirror_host_program_frames_total{hook=\"ingress\"} 12",
            "trunkline_mirror_host_program_seconds_total{hook=\"ingress\"} 0.000003400",
        ] {
            assert!(
                page.lines().any(|line| line == expected),
                "{expected}\n{page}"
            );
        }
    }
}
