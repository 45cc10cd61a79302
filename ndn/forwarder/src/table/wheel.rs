//! A timer wheel over slab slots: arming, moving and cancelling cost the same whatever the number of timers.
//!
//! Times are rounded up to ticks of about a millisecond. The wheel reaches about 8.6 seconds ahead; a timer further
//! away waits at the wheel's end and is armed again when it comes up.

use super::NIL;

/// Length of a tick: 2^20 ns, about 1.05 ms.
const TICK_SHIFT: u32 = 20;
/// Buckets; a power of two.
const BUCKETS: usize = 8192;
const MASK: u64 = BUCKETS as u64 - 1;

#[derive(Debug, Clone, Copy)]
struct Timer {
    prev: u32,
    next: u32,
    /// Bucket the timer waits in, or `NIL` when it is not armed.
    bucket: u32,
    /// When it is due, in nanoseconds.
    due: u64,
}

/// Timers, one at most for each slab slot.
#[derive(Debug, Clone)]
pub(crate) struct Wheel {
    timers: Vec<Timer>,
    heads: Vec<u32>,
    /// One bit a bucket: set when the bucket holds a timer.
    occupied: Vec<u64>,
    /// Tick up to which all buckets have been emptied.
    tick: u64,
    armed: usize,
}

fn tick_of(due: u64) -> u64 {
    due.div_ceil(1 << TICK_SHIFT)
}

impl Wheel {
    pub(crate) fn new() -> Self {
        Wheel {
            timers: Vec::new(),
            heads: vec![NIL; BUCKETS],
            occupied: vec![0; BUCKETS / 64],
            tick: 0,
            armed: 0,
        }
    }

    /// Bytes of memory held for each slot.
    pub(crate) const BYTES_PER_SLOT: usize = size_of::<Timer>();

    /// Arms a slot's timer, or moves it, to go off at `due` or at most a tick later; all times are nanoseconds.
    #[inline]
    pub(crate) fn arm(&mut self, now: u64, id: u32, due: u64) {
        if self.armed == 0 {
            // Nothing to catch up with.
            self.tick = self.tick.max(now >> TICK_SHIFT);
        }
        self.place(id, due);
    }

    fn place(&mut self, id: u32, due: u64) {
        let at = id as usize;
        if at >= self.timers.len() {
            self.timers.resize(
                at + 1,
                Timer {
                    prev: NIL,
                    next: NIL,
                    bucket: NIL,
                    due: 0,
                },
            );
        } else {
            self.cancel(id);
        }
        let tick = tick_of(due).clamp(self.tick + 1, self.tick + MASK);
        let bucket = (tick & MASK) as usize;
        let next = std::mem::replace(&mut self.heads[bucket], id);
        if next != NIL {
            self.timers[next as usize].prev = id;
        }
        self.timers[at] = Timer {
            prev: NIL,
            next,
            bucket: bucket as u32,
            due,
        };
        self.occupied[bucket / 64] |= 1 << (bucket % 64);
        self.armed += 1;
    }

    /// Disarms a slot's timer, if it is armed.
    #[inline]
    pub(crate) fn cancel(&mut self, id: u32) {
        let Some(&Timer {
            prev, next, bucket, ..
        }) = self.timers.get(id as usize)
        else {
            return;
        };
        if bucket == NIL {
            return;
        }
        match prev {
            NIL => {
                self.heads[bucket as usize] = next;
                if next == NIL {
                    self.occupied[bucket as usize / 64] &= !(1 << (bucket % 64));
                }
            }
            prev => self.timers[prev as usize].next = next,
        }
        if next != NIL {
            self.timers[next as usize].prev = prev;
        }
        self.timers[id as usize].bucket = NIL;
        self.armed -= 1;
    }

    /// When the next timer goes off, in nanoseconds.
    pub(crate) fn deadline(&self) -> Option<u64> {
        (self.armed > 0).then(|| self.next_tick(self.tick + 1 + MASK) << TICK_SHIFT)
    }

    /// The next tick up to `until` whose bucket holds a timer; `until` when there is none.
    fn next_tick(&self, until: u64) -> u64 {
        let mut tick = self.tick + 1;
        while tick < until {
            let bucket = (tick & MASK) as usize;
            let word = self.occupied[bucket / 64] >> (bucket % 64);
            if word != 0 {
                return (tick + u64::from(word.trailing_zeros())).min(until);
            }
            tick += 64 - (bucket % 64) as u64;
        }
        until
    }

    /// A slot whose timer is due at `now` (nanoseconds), disarmed; call until there is none.
    pub(crate) fn pop(&mut self, now: u64) -> Option<u32> {
        let now_tick = now >> TICK_SHIFT;
        if self.armed == 0 {
            self.tick = self.tick.max(now_tick);
            return None;
        }
        while self.tick < now_tick {
            let tick = self.next_tick(now_tick);
            loop {
                let id = self.heads[(tick & MASK) as usize];
                if id == NIL {
                    break;
                }
                self.cancel(id);
                let due = self.timers[id as usize].due;
                if tick_of(due) <= tick {
                    return Some(id);
                }
                // It was beyond the wheel's reach. All ticks before this one are done.
                self.tick = self.tick.max(tick - 1);
                self.place(id, due);
                if self.timers[id as usize].bucket == (tick & MASK) as u32 {
                    break;
                }
            }
            self.tick = tick;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_timer_goes_off_once_and_at_most_a_tick_late() {
        let mut wheel = Wheel::new();
        wheel.arm(0, 3, 10 * MS);
        let due = wheel.deadline().unwrap();
        assert!((10 * MS..12 * MS).contains(&due), "{due}");
        assert_eq!(wheel.pop(due - 1), None);
        assert_eq!(wheel.pop(due), Some(3));
        assert_eq!(wheel.pop(due), None);
        assert_eq!(wheel.deadline(), None);
    }

    #[test]
    fn a_timer_beyond_the_wheels_reach_is_kept() {
        let mut wheel = Wheel::new();
        wheel.arm(0, 0, 3_600_000 * MS);
        let mut now = 0;
        while wheel.pop(now).is_none() {
            assert!(now < 3_600_000 * MS + (1 << TICK_SHIFT));
            now = wheel.deadline().unwrap();
        }
        assert!(now >= 3_600_000 * MS);
    }

    #[test]
    fn a_wheel_that_was_idle_does_not_wake_anybody_early() {
        let mut wheel = Wheel::new();
        let day = 86_400_000 * MS;
        wheel.arm(day, 0, day + 4000 * MS);
        assert!(wheel.deadline().unwrap() >= day + 4000 * MS);
    }

    #[test]
    fn a_timer_armed_for_the_past_goes_off_at_the_next_tick() {
        let mut wheel = Wheel::new();
        assert_eq!(wheel.pop(50_000 * MS), None);
        wheel.arm(50_000 * MS, 1, 0);
        let due = wheel.deadline().unwrap();
        assert!(due <= 50_003 * MS);
        assert_eq!(wheel.pop(due), Some(1));
    }

    proptest! {
        #[test]
        fn agrees_with_a_map(ops in prop::collection::vec((0u8..4, 0u32..16, 0u64..20_000), 1..300)) {
            let mut wheel = Wheel::new();
            let mut model: HashMap<u32, u64> = HashMap::new();
            let mut now = 0;
            for (op, id, ms) in ops {
                match op {
                    0 | 1 => { wheel.arm(now, id, now + ms * MS); model.insert(id, now + ms * MS); }
                    2 => { wheel.cancel(id); model.remove(&id); }
                    _ => {
                        now += ms * MS / 8;
                        while let Some(id) = wheel.pop(now) {
                            let due = model.remove(&id);
                            prop_assert!(due.is_some_and(|due| due <= now), "{:?} at {}", due, now);
                        }
                        // What is left is due in the future, or within the tick that is not over.
                        for (&id, &due) in &model {
                            prop_assert!(tick_of(due) > now >> TICK_SHIFT || due + (2 << TICK_SHIFT) > now, "{} {} {}", id, due, now);
                        }
                    }
                }
                prop_assert_eq!(wheel.deadline().is_some(), !model.is_empty());
            }
        }
    }
}
