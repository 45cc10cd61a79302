//! What people and machines read for the numbers of the maps: counters, reasons and states by the names of `state.h`.

use crate::layout::{COUNTERS, REASONS};

/// Names of counters, by [`Counter`](crate::layout::Counter).
pub const COUNTER: [&str; COUNTERS] = [
    "mirrored",
    "mirrored_bytes",
    "mirror_stale",
    "mirror_ahead",
    "mirror_signal",
    "mirror_unarmed",
    "mirror_unknown",
    "ack_raised",
    "virtual",
    "virtual_bytes",
    "real",
    "real_bytes",
    "real_hole",
    "retransmitted",
    "retransmitted_bytes",
    "repeat_suppressed",
    "ack_held",
    "ack_released",
    "ack_kept",
    "ack_implausible",
    "sack_clipped",
    "dsack_stripped",
    "aborted",
    "window_lowered",
    "busy",
    "fell_back",
];

/// Names of reasons for falling back, by [`Reason`](crate::layout::Reason).
pub const REASON: [&str; REASONS] = [
    "none",
    "no_socket",
    "late",
    "options",
    "gap",
    "reach",
    "urgent",
];

/// Names of the states of connections to the next replica, by [`SndState`](crate::layout::SndState).
pub const SND_STATE: [&str; 6] = ["new", "real", "virtual", "recovery", "fallen", "closed"];

/// Names of the states of connections from the replica before, by [`RcvState`](crate::layout::RcvState).
pub const RCV_STATE: [&str; 5] = ["new", "started", "out_of_step", "in_step", "fallen"];

/// The name for a number; `unknown` for one of another release.
#[must_use]
pub fn word(words: &[&'static str], number: u8) -> &'static str {
    words.get(usize::from(number)).copied().unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Constants of an enum of `state.h`, without their prefix.
    fn named(prefix: &str) -> Vec<String> {
        let text = include_str!("../../bpf/state.h");
        let mut code = String::new();
        let mut rest = text;
        while let Some((before, comment)) = rest.split_once("/*") {
            code.push_str(before);
            rest = comment.split_once("*/").map_or("", |(_, after)| after);
        }
        code.push_str(rest);
        code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .filter_map(|word| word.strip_prefix(prefix))
            .map(str::to_lowercase)
            .collect()
    }

    #[test]
    fn maps_have_the_room_that_the_header_says() {
        let line = format!("\n#define MR_FLOWS {}\n", crate::layout::FLOWS);
        assert!(include_str!("../../bpf/state.h").contains(&line));
    }

    /// Operators have no header: `/metrics` sends them to the page.
    #[test]
    fn the_page_says_what_each_counter_counts() {
        let page = include_str!("../../../docs/mirror.md");
        let (_, table) = page.split_once("\n### Counters\n").expect("a section");
        let (table, _) = table.split_once("\n## ").expect("its end");
        let rows = || table.lines().filter(|line| line.starts_with("| `"));
        for name in COUNTER.iter().chain(&crate::switch::layout::COUNTER) {
            let name = format!("`{name}`");
            assert!(rows().any(|row| row.contains(&name)), "{name}");
        }
    }

    #[test]
    fn words_are_those_of_the_header() {
        assert_eq!(named("MR_C_"), COUNTER);
        assert_eq!(named("MR_WHY_"), REASON);
        assert_eq!(named("MR_SND_"), SND_STATE);
        assert_eq!(named("MR_RCV_"), RCV_STATE);
        assert_eq!(word(&REASON, 200), "unknown");
    }
}
