//! The consumer fed packet by packet: Nacks, rejection, what is believed of the stream's end, Karn's rule.

mod common;

use common::packets::{data, data_with, segments, sent, spoiled};
use common::{Congestion, aimd, config, cubic, fixed_window, ms, prefix};
use ndn_endpoint::{Consumer, ConsumerConfig, FailReason, Outcome, Rejected, State, VerifyPolicy};
use ndn_packet::{Data, NackReason, SigningKey, content_type};
use std::time::Duration;

fn fixed(window: usize) -> ConsumerConfig {
    ConsumerConfig {
        congestion: fixed_window(window),
        probe: false,
        ..config()
    }
}

fn read(consumer: &mut Consumer) -> Vec<u64> {
    std::iter::from_fn(|| consumer.read())
        .map(|(segment, _)| segment)
        .collect()
}

#[test]
fn the_window_is_kept_full_and_in_order() {
    let mut c = Consumer::new(fixed(3), ms(0));
    assert_eq!(segments(&sent(&mut c, ms(0))), [0, 1, 2]);
    assert_eq!(c.on_data(ms(1), data(1), false), Outcome::Accepted);
    assert_eq!(read(&mut c), []);
    assert_eq!(segments(&sent(&mut c, ms(1))), [3]);
    assert_eq!(c.on_data(ms(1), data(1), false), Outcome::Duplicate);
    assert_eq!(c.on_data(ms(1), data(9), false), Outcome::Unsolicited);
    c.on_data(ms(2), data_with(0, Some(3)), false);
    assert_eq!(read(&mut c), [0, 1]);
    assert_eq!((c.last(), c.next_segment()), (Some(3), 2));
    assert_eq!(c.on_data(ms(2), data(0), false), Outcome::Duplicate);
    c.on_data(ms(2), data(3), false);
    c.on_data(ms(2), data(2), false);
    assert!(!c.is_done());
    assert_eq!(read(&mut c), [2, 3]);
    assert_eq!((c.state(), c.deadline()), (&State::Done, None));
    assert!(sent(&mut c, ms(3)).is_empty());
    assert_eq!(c.stats().duplicates, 3);
}

#[test]
fn a_packet_that_is_too_long_is_never_buffered() {
    let wire_len = data(1).wire().len();
    let config = ConsumerConfig {
        max_packet_bytes: wire_len,
        max_rejects: 2,
        ..fixed(2)
    };
    let mut c = Consumer::new(config, ms(0));
    let long = |segment| {
        let name = prefix().append_segment(segment);
        let content = vec![0; wire_len + 1];
        let wire = Data::builder(&name)
            .content(&content)
            .sign(&SigningKey::DigestSha256);
        Data::parse(wire).expect("well formed")
    };
    sent(&mut c, ms(0));
    for _ in 0..2 {
        assert_eq!(c.on_data(ms(1), long(1), false), Outcome::Refused);
        assert_eq!(c.stats().buffered, 0);
        assert_eq!(segments(&sent(&mut c, ms(1))), [1]);
    }
    assert_eq!(c.on_data(ms(2), data(0), false), Outcome::Accepted);
    assert_eq!(c.on_data(ms(2), long(1), false), Outcome::Refused);
    assert!(matches!(
        c.failure(),
        Some(FailReason::Rejected { segment: 1, .. })
    ));
}

#[test]
fn a_probe_goes_first() {
    let mut c = Consumer::new(
        ConsumerConfig {
            probe: true,
            ..fixed(4)
        },
        ms(0),
    );
    assert_eq!(segments(&sent(&mut c, ms(0))), [0]);
    assert_eq!(c.state(), &State::Probing);
    c.on_data(ms(1), data(0), false);
    assert_eq!(c.state(), &State::Flowing);
    assert_eq!(segments(&sent(&mut c, ms(1))), [1, 2, 3, 4]);
}

#[test]
fn a_timeout_asks_again_with_another_nonce() {
    let mut c = Consumer::new(fixed(1), ms(0));
    let first = sent(&mut c, ms(0));
    assert_eq!(
        c.deadline(),
        Some(ms(1000)),
        "RFC 6298: 1 s before anything is measured"
    );
    c.on_deadline(ms(999));
    assert!(sent(&mut c, ms(999)).is_empty());
    c.on_deadline(ms(1000));
    let again = sent(&mut c, ms(1000));
    assert_eq!(segments(&again), [0]);
    assert_ne!(first[0].nonce(), again[0].nonce());
    assert_eq!(c.deadline(), Some(ms(3000)), "backed off");
    // Karn: the answer may be the first Interest's, so nothing is measured.
    c.on_data(ms(1001), data(0), false);
    assert_eq!((c.stats().srtt, c.stats().rto), (None, ms(2000)));
    sent(&mut c, ms(1001));
    c.on_data(ms(1011), data(1), false);
    assert_eq!((c.stats().srtt, c.stats().rto), (Some(ms(10)), ms(200)));
}

#[test]
fn a_late_answer_to_the_only_interest_is_taken_and_measured() {
    let mut c = Consumer::new(fixed(1), ms(0));
    sent(&mut c, ms(0));
    c.on_deadline(ms(1000));
    assert_eq!(c.on_data(ms(1100), data(0), false), Outcome::Accepted);
    assert_eq!(c.stats().srtt, Some(ms(1100)));
    assert_eq!(
        segments(&sent(&mut c, ms(1100))),
        [1],
        "segment 0 is not asked for again"
    );
}

#[test]
fn nacks_are_told_apart() {
    let mut c = Consumer::new(fixed(4), ms(0));
    let out = sent(&mut c, ms(0));
    // Duplicate: at once, another nonce.
    c.on_nack(ms(5), &out[0], NackReason::Duplicate);
    let again = sent(&mut c, ms(5));
    assert_eq!(segments(&again), [0]);
    assert_ne!(again[0].nonce(), out[0].nonce());
    // A Nack for the Interest that was given up says nothing.
    c.on_nack(ms(5), &out[0], NackReason::Congestion);
    assert_eq!(c.stats().nacks, 1);
    // Congestion: later.
    c.on_nack(ms(5), &out[1], NackReason::Congestion);
    assert_eq!(c.stats().decreases, 1);
    assert_eq!(
        segments(&sent(&mut c, ms(5))),
        [4],
        "the window has room for another segment"
    );
    c.on_deadline(ms(15));
    assert!(
        sent(&mut c, ms(15)).is_empty(),
        "it waits for room in the window"
    );
    c.on_data(ms(16), data(2), false);
    assert_eq!(segments(&sent(&mut c, ms(16))), [1]);
    // NoRoute: silence, then one at a time, the silence longer each time.
    c.on_nack(ms(20), &out[3], NackReason::NoRoute);
    assert!(sent(&mut c, ms(39)).is_empty());
    assert_eq!(c.state(), &State::Probing);
    let probe = sent(&mut c, ms(40));
    assert_eq!(segments(&probe), [3]);
    c.on_nack(ms(41), &probe[0], NackReason::NoRoute);
    assert_eq!(c.deadline(), Some(ms(81)));
    c.on_deadline(ms(81));
    assert_eq!(segments(&sent(&mut c, ms(81))), [3]);
    c.on_data(ms(82), data(3), false);
    assert_eq!(c.state(), &State::Flowing);
}

#[test]
fn a_signature_that_fails_is_asked_for_past_the_caches() {
    let mut c = Consumer::new(fixed(2), ms(0));
    assert!(!sent(&mut c, ms(0))[0].must_be_fresh());
    c.on_data(ms(1), spoiled(&data(0)), false);
    c.on_data(ms(1), data(1), false);
    assert_eq!(read(&mut c), []);
    let again = sent(&mut c, ms(1));
    assert_eq!(segments(&again), [0, 2]);
    assert!(again[0].must_be_fresh() && !again[1].must_be_fresh());
    c.on_data(ms(2), data(0), false);
    assert_eq!(read(&mut c), [0, 1]);
    assert_eq!(c.stats().rejected, 1);
}

/// So that routers ask for it past the face that the bad one came from.
#[test]
fn interests_for_what_was_rejected_say_so() {
    let mut c = Consumer::new(fixed(2), ms(0));
    let told = |c: &mut Consumer, now| -> Vec<(u64, bool)> {
        std::iter::from_fn(|| c.poll_interest(now))
            .map(|p| {
                (
                    p.name()
                        .last()
                        .and_then(|n| n.as_segment())
                        .expect("a segment"),
                    p.rejected,
                )
            })
            .collect()
    };
    assert_eq!(told(&mut c, ms(0)), [(0, false), (1, false)]);
    c.on_data(ms(1), spoiled(&data(0)), false);
    assert_eq!(read(&mut c), []);
    assert_eq!(told(&mut c, ms(1)), [(0, true)]);
    let mut now = ms(1);
    let again = loop {
        now = now.max(c.deadline().expect("an answer is owed"));
        c.on_deadline(now);
        let again = told(&mut c, now);
        if let Some(again) = again.into_iter().find(|(segment, _)| *segment == 0) {
            break again;
        }
    };
    assert_eq!(again, (0, true), "its repeats, too");
    c.on_data(now, data(0), false);
    c.on_data(now, data(1), false);
    assert_eq!(read(&mut c), [0, 1]);
    assert_eq!(told(&mut c, now), [(2, false), (3, false)]);
    for (rejected, second) in [(Rejected::First, false), (Rejected::All, true)] {
        let anew = ConsumerConfig {
            first: 5,
            rejected,
            ..fixed(2)
        };
        let mut c = Consumer::new(anew, ms(0));
        assert_eq!(told(&mut c, ms(0)), [(5, true), (6, second)]);
    }
}

#[test]
fn a_reader_may_reject_what_it_read() {
    let mut c = Consumer::new(
        ConsumerConfig {
            verify: VerifyPolicy::None,
            ..fixed(4)
        },
        ms(0),
    );
    sent(&mut c, ms(0));
    for segment in 0..3 {
        c.on_data(ms(1), data(segment), false);
    }
    assert_eq!(read(&mut c), [0, 1, 2]);
    assert!(c.reject(1));
    assert!(!c.reject(1), "it is asked for again already");
    assert!(!c.reject(7));
    c.on_data(ms(2), data(3), false);
    assert_eq!(read(&mut c), [], "what follows waits for it");
    assert_eq!(segments(&sent(&mut c, ms(2)))[0], 1);
    c.on_data(ms(3), data(1), false);
    assert_eq!(read(&mut c), [1, 3], "and 2 is not given twice");
    for tries in 0..3 {
        assert!(c.reject(3));
        sent(&mut c, ms(4));
        c.on_data(ms(4), data(3), false);
        assert_eq!(read(&mut c), [3], "{tries}");
    }
    assert!(c.reject(3));
    assert!(
        matches!(
            c.failure(),
            Some(FailReason::Rejected {
                segment: 3,
                times: 4,
                ..
            })
        ),
        "{:?}",
        c.failure()
    );
}

#[test]
fn a_forged_end_does_not_cut_the_stream() {
    let mut c = Consumer::new(fixed(4), ms(0));
    sent(&mut c, ms(0));
    c.on_data(ms(1), spoiled(&data_with(1, Some(1))), false);
    c.on_data(ms(1), data(0), false);
    assert_eq!(read(&mut c), [0]);
    assert!(!c.is_done() && c.last().is_none());
    let again = segments(&sent(&mut c, ms(1)));
    assert_eq!(
        again,
        [1, 2, 3, 4],
        "what was forgotten for the false end is asked for again"
    );
    for segment in 1..4 {
        c.on_data(ms(2), data_with(segment, Some(3)), false);
    }
    assert_eq!(read(&mut c), [1, 2, 3]);
    assert!(c.is_done());
}

#[test]
fn the_end_may_be_told() {
    let mut c = Consumer::new(
        ConsumerConfig {
            live: true,
            ..fixed(8)
        },
        ms(0),
    );
    sent(&mut c, ms(0));
    for segment in 0..3 {
        c.on_data(ms(1), data(segment), false);
    }
    c.set_last(2);
    assert_eq!(c.stats().outstanding, 0);
    assert_eq!(read(&mut c), [0, 1, 2]);
    assert!(c.is_done());
    // Rejected after the end: not done any more.
    assert!(c.reject(2));
    assert_eq!(segments(&sent(&mut c, ms(2))), [2]);
}

#[test]
fn a_first_and_last_segment_bound_what_is_asked() {
    let mut c = Consumer::new(
        ConsumerConfig {
            first: 5,
            last: Some(6),
            ..fixed(8)
        },
        ms(0),
    );
    assert_eq!(segments(&sent(&mut c, ms(0))), [5, 6]);
    c.on_data(ms(1), data(6), false);
    c.on_data(ms(1), data(5), false);
    assert_eq!(read(&mut c), [5, 6]);
    assert!(c.is_done());
    assert!(
        Consumer::new(
            ConsumerConfig {
                first: 5,
                last: Some(4),
                ..fixed(8)
            },
            ms(0)
        )
        .is_done()
    );
    let mut end = Consumer::new(
        ConsumerConfig {
            first: u64::MAX - 1,
            ..fixed(8)
        },
        ms(0),
    );
    assert_eq!(segments(&sent(&mut end, ms(0))), [u64::MAX - 1]);
}

#[test]
fn a_producer_may_refuse() {
    let mut c = Consumer::new(fixed(1), ms(0));
    sent(&mut c, ms(0));
    let name = prefix().append_segment(0);
    let refusal = Data::builder(&name)
        .content_type(content_type::NACK)
        .sign(&SigningKey::DigestSha256);
    c.on_data(ms(1), Data::parse(refusal).expect("well formed"), false);
    assert!(c.read().is_none());
    assert_eq!(
        c.failure(),
        Some(&FailReason::Refused {
            prefix: prefix(),
            segment: 0
        })
    );
}

#[test]
fn an_end_that_nobody_has_signed_is_the_readers_to_judge() {
    for believe_final in [true, false] {
        let mut c = Consumer::new(
            ConsumerConfig {
                last: Some(2),
                verify: VerifyPolicy::None,
                believe_final,
                ..fixed(3)
            },
            ms(0),
        );
        sent(&mut c, ms(0));
        c.on_data(ms(1), data_with(0, Some(0)), false);
        assert_eq!(read(&mut c), [0]);
        assert_eq!(c.is_done(), believe_final);
        if !believe_final {
            sent(&mut c, ms(1));
            c.on_data(ms(2), data(1), false);
            c.on_data(ms(2), data(2), false);
            assert_eq!(read(&mut c), [1, 2]);
            assert!(c.is_done(), "the last one was known");
        }
    }
}

#[test]
fn a_refusal_that_nobody_has_signed_is_the_readers_to_judge() {
    let mut c = Consumer::new(
        ConsumerConfig {
            verify: VerifyPolicy::None,
            believe_nack: false,
            ..fixed(1)
        },
        ms(0),
    );
    sent(&mut c, ms(0));
    let name = prefix().append_segment(0);
    let forged = Data::builder(&name)
        .content_type(content_type::NACK)
        .sign(&SigningKey::DigestSha256);
    c.on_data(ms(1), Data::parse(forged).expect("well formed"), false);
    assert_eq!(read(&mut c), [0]);
    assert!(c.reject(0));
    let again = sent(&mut c, ms(2));
    assert!(
        again[0].must_be_fresh(),
        "past the cache that had the forged one"
    );
    c.on_data(ms(3), data(0), false);
    assert_eq!((read(&mut c), c.failure()), (vec![0], None));
}

#[test]
fn what_is_too_long_is_not_handed_on_by_a_stream_that_has_failed() {
    let mut c = Consumer::new(
        ConsumerConfig {
            max_packet_bytes: 10,
            max_rejects: 0,
            ..fixed(2)
        },
        ms(0),
    );
    sent(&mut c, ms(0));
    for segment in 0..2 {
        let outcome = c.on_data(ms(1), data(segment), false);
        assert_eq!(outcome, ndn_endpoint::Outcome::Refused, "{segment}");
    }
    assert!(c.failure().is_some());
    assert!(c.read().is_none());
}

#[test]
fn what_is_asked_for_ahead_grows_with_what_is_read() {
    let mut c = Consumer::new(
        ConsumerConfig {
            first_ahead: 2,
            max_buffered_segments: 5,
            ..fixed(64)
        },
        ms(0),
    );
    assert_eq!(segments(&sent(&mut c, ms(0))), [0, 1]);
    c.on_data(ms(1), data(0), false);
    c.on_data(ms(1), data(1), false);
    // Nobody has read: nothing more, however long.
    assert!(sent(&mut c, ms(2)).is_empty());
    assert_eq!(c.ahead(), 2);
    assert_eq!(read(&mut c), [0, 1]);
    assert_eq!(c.ahead(), 4);
    assert_eq!(segments(&sent(&mut c, ms(3))), [2, 3, 4, 5]);
    for segment in 2..6 {
        c.on_data(ms(4), data(segment), false);
    }
    assert_eq!(read(&mut c), [2, 3, 4, 5]);
    assert_eq!(c.ahead(), 5, "the bound of memory holds");
    assert_eq!(segments(&sent(&mut c, ms(5))), [6, 7, 8, 9, 10]);
}

/// Forwarders suppress repeats that follow each other within some 400 ms; were all of them within that time, the segment
/// would never have been asked for again.
#[test]
fn one_segment_that_never_comes_is_asked_for_ever_less_often_until_its_time_is_over() {
    let mut c = Consumer::new(
        ConsumerConfig {
            max_buffered_segments: 1 << 20,
            ..fixed(4)
        },
        ms(0),
    );
    let mut asked = Vec::new();
    let mut now = ms(0);
    while c.failure().is_none() && now < Duration::from_secs(100) {
        now += ms(1);
        c.on_deadline(now);
        for segment in segments(&sent(&mut c, now)) {
            if segment == 2 {
                asked.push(now);
            } else {
                c.on_data(now, data(segment), false);
            }
        }
        read(&mut c);
    }
    let waits: Vec<Duration> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(waits[0], ms(10), "a gap is mended at once");
    let mut least = ms(10);
    for wait in &waits {
        assert!((least..=least * 5 / 4 + ms(1)).contains(wait), "{waits:?}");
        least = (least * 2).min(ms(4000));
    }
    let since = asked[0];
    assert_eq!(
        c.failure(),
        Some(&FailReason::Lost {
            prefix: prefix(),
            segment: 2,
            waited: Duration::from_secs(15),
            tries: asked.len() as u32,
        })
    );
    assert_eq!(now, since + Duration::from_secs(15));
}

#[test]
fn a_segment_is_not_given_up_for_what_the_path_did_not_bring() {
    let mut c = Consumer::new(
        ConsumerConfig {
            give_up_after: Duration::from_secs(18),
            max_buffered_segments: 1 << 20,
            ..fixed(4)
        },
        ms(0),
    );
    // Twice nothing comes for 8 s, and in between all but segment 2.
    let is_silent = |now: Duration| matches!(now.as_secs(), 1..9 | 20..28);
    let mut now = ms(0);
    while now < Duration::from_secs(38) {
        now += ms(1);
        c.on_deadline(now);
        for segment in segments(&sent(&mut c, now)) {
            if segment != 2 && !is_silent(now) {
                c.on_data(now, data(segment), false);
            }
        }
        read(&mut c);
    }
    assert_eq!(c.failure(), None);
}

#[test]
fn names_choose_the_consumer() {
    let mut c = Consumer::new(fixed(2), ms(0));
    sent(&mut c, ms(0));
    assert!(c.wants(prefix().append_segment(1).as_ref()));
    assert!(!c.wants(prefix().append_segment(2).as_ref()));
    assert!(!c.wants(prefix().as_ref()));
}

#[test]
fn early_interests_do_not_keep_a_lost_segment_waiting() {
    let mut c = Consumer::new(
        ConsumerConfig {
            live: true,
            ..fixed(4)
        },
        ms(0),
    );
    assert_eq!(segments(&sent(&mut c, ms(0))), [0, 1, 2, 3]);
    // Segment 0 exists and was lost. The other three and a new one wait at the producer and fill the window.
    c.known_produced(ms(10), 0);
    assert_eq!(c.deadline(), Some(ms(1010)));
    c.on_deadline(ms(1010));
    assert_eq!(segments(&sent(&mut c, ms(1010))), [0]);
    c.on_deadline(ms(3100));
    assert_eq!(c.stats().early, 3);
    assert_eq!(
        segments(&sent(&mut c, ms(3100))),
        [0],
        "again, and nothing else"
    );
}

#[test]
fn a_live_stream_waits_for_its_producer_for_ever_but_not_for_what_exists() {
    let mut c = Consumer::new(
        ConsumerConfig {
            live: true,
            ..fixed(4)
        },
        ms(0),
    );
    let mut now = ms(0);
    while now < Duration::from_secs(1000) {
        sent(&mut c, now);
        now = c.deadline().expect("it asks again and again");
        c.on_deadline(now);
    }
    assert_eq!((c.failure(), c.stats().decreases), (None, 0));
    c.known_produced(now, 0);
    let known_at = now;
    while c.failure().is_none() {
        sent(&mut c, now);
        now = c.deadline().expect("it asks again and again");
        c.on_deadline(now);
    }
    assert!(
        matches!(c.failure(), Some(FailReason::Stalled { segment: 0, .. })),
        "{:?}",
        c.failure()
    );
    assert_eq!(now - known_at, Duration::from_secs(15));
}

/// A consumer that knows a round trip of 1 ms and has a window of `n` Interests out since 100 ms.
fn with_a_window_out(window: Congestion, n: usize) -> (Consumer, u64) {
    let mut c = Consumer::new(
        ConsumerConfig {
            congestion: window,
            ..fixed(1)
        },
        ms(0),
    );
    let first = segments(&sent(&mut c, ms(0)));
    for &segment in &first {
        c.on_data(ms(1), data(segment), false);
    }
    read(&mut c);
    let out = segments(&sent(&mut c, ms(100)));
    assert_eq!(out.len(), n);
    (c, out[0])
}

fn windows() -> [(Congestion, usize); 3] {
    [(fixed_window(8), 8), (cubic(), 20), (aimd(), 20)]
}

#[test]
fn a_path_that_stood_still_is_asked_once_and_its_window_is_as_before() {
    for (window, n) in windows() {
        let (mut c, first) = with_a_window_out(window, n);
        let due = c.deadline().expect("a timeout");
        assert_eq!(due, ms(300), "the least timeout");
        c.on_deadline(due);
        assert_eq!(segments(&sent(&mut c, due)), [first], "one, not {n}");
        // All of the first answers come, then the one to what was sent again.
        c.on_data(ms(400), data(first), false);
        assert!(sent(&mut c, ms(400)).is_empty());
        for segment in first + 1..first + n as u64 {
            c.on_data(ms(400), data(segment), false);
            let more = segments(&sent(&mut c, ms(400)));
            assert!(more.iter().all(|&s| s >= first + n as u64), "{more:?}");
        }
        c.on_data(ms(401), data(first), false);
        let stats = c.stats();
        assert_eq!((stats.retransmitted, stats.spurious_timeouts), (1, 1));
        assert!(stats.window >= n, "{stats:?}");
        assert_eq!(stats.outstanding, stats.window);
        assert_eq!(read(&mut c).len(), n);
    }
}

#[test]
fn what_was_lost_is_asked_for_again_soon_after_the_path_answers() {
    for (window, n) in windows() {
        let (mut c, first) = with_a_window_out(window, n);
        c.on_deadline(ms(300));
        assert_eq!(segments(&sent(&mut c, ms(300))), [first]);
        c.on_data(ms(301), data(first), false);
        assert!(sent(&mut c, ms(301)).is_empty(), "others may be late only");
        let due = c.deadline().expect("an end of the wait");
        assert_eq!(due, ms(311), "reorder_wait after the answer");
        c.on_deadline(due);
        let again = segments(&sent(&mut c, due));
        let stats = c.stats();
        assert_eq!(stats.spurious_timeouts, 0);
        let lost = again.iter().filter(|&&s| s < first + n as u64);
        assert_eq!(
            lost.count(),
            stats.window.min(n - 1),
            "as many as may be out"
        );
        assert_eq!(again[0], first + 1);
    }
}

#[test]
fn what_a_stall_really_lost_is_found_after_the_timeout_was_taken_back() {
    let (mut c, first) = with_a_window_out(fixed_window(8), 8);
    c.on_deadline(ms(300));
    assert_eq!(segments(&sent(&mut c, ms(300))), [first]);
    // The third never comes.
    for segment in (first..first + 8).filter(|&s| s != first + 2) {
        c.on_data(ms(400), data(segment), false);
    }
    assert_eq!(c.stats().spurious_timeouts, 1);
    let mut asked = segments(&sent(&mut c, ms(400)));
    while let Some(due) = c.deadline().filter(|&due| due < ms(5_000)) {
        c.on_deadline(due);
        asked.extend(segments(&sent(&mut c, due)));
    }
    assert!(asked.contains(&(first + 2)), "{asked:?}");
}

#[test]
fn a_refusal_after_a_timeout_ends_the_wait_for_late_answers() {
    let (mut c, first) = with_a_window_out(fixed_window(8), 8);
    c.on_deadline(ms(300));
    let again = sent(&mut c, ms(300));
    c.on_nack(ms(301), &again[0], NackReason::Congestion);
    let mut asked = Vec::new();
    while let Some(due) = c.deadline().filter(|&due| due < ms(5_000)) {
        c.on_deadline(due);
        asked.extend(segments(&sent(&mut c, due)));
    }
    for segment in first..first + 8 {
        assert!(asked.contains(&segment), "{segment} in {asked:?}");
    }
}
