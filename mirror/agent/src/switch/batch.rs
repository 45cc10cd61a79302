//! What an answer makes of the map of entries, in two steps: what is removed or replaced goes first; the rest is made when
//! no program copies by that any more, as its memory may be given to what is made next. So there is one wait for an answer,
//! however much it replaces, and none where it replaces nothing; segments of what is replaced are not copied meanwhile.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use super::layout::{Entry, Key};
use super::wire::{Answer, EntrySays, Segments};

/// What is to be done with the map.
#[derive(Debug, Default)]
pub struct Batch {
    /// These go.
    pub remove: Vec<Key>,
    /// Then these come, none of which is there any more.
    pub make: Vec<(Key, Entry)>,
    /// These are as they should be.
    pub right: Vec<Segments>,
    /// These can't be made, and why; what is there of them stays.
    pub wrong: Vec<(Segments, String)>,
}

impl Batch {
    /// Of what an answer names, where these entries are there. `strange`: those that are to go, as nobody has named them.
    #[must_use]
    pub fn of(answer: &Answer, there: &HashMap<Key, Entry>, strange: &[Key]) -> Self {
        let removed = answer.removed.iter().map(Segments::key);
        let removed: HashSet<Key> = removed.chain(strange.iter().copied()).collect();
        // Of what is named twice the last counts.
        let said: HashMap<Key, &EntrySays> = answer
            .entries
            .iter()
            .map(|says| (says.of.key(), says))
            .collect();
        let mut batch = Self {
            remove: removed.iter().copied().collect(),
            ..Self::default()
        };
        for (key, says) in said {
            if removed.contains(&key) {
                continue;
            }
            let entry = says.copies().and_then(|copies| {
                Entry::new(&copies).ok_or_else(|| String::from("too many copies"))
            });
            match (entry, there.get(&key)) {
                (Err(why), _) => batch.wrong.push((says.of, why)),
                (Ok(entry), Some(before)) if before.used() == entry.used() => {
                    batch.right.push(says.of);
                }
                (Ok(entry), before) => {
                    if before.is_some() {
                        batch.remove.push(key);
                    }
                    batch.make.push((key, entry));
                }
            }
        }
        batch
    }
}

/// Entries of segments that come in, or of copies that leave, by what is no port of the bridge.
#[must_use]
pub fn astray(there: &HashMap<Key, Entry>, is_port: impl Fn(u32) -> bool) -> Vec<Key> {
    let all = there.iter();
    let astray = all.filter(|(key, entry)| not_a_port(key, entry, &is_port).is_some());
    astray.map(|(key, _)| *key).collect()
}

/// What an entry names that is no port of the bridge, by number.
#[must_use]
pub fn not_a_port(key: &Key, entry: &Entry, is_port: impl Fn(u32) -> bool) -> Option<u32> {
    let by = entry.used().iter().map(|copy| copy.port);
    std::iter::once(key.port)
        .chain(by)
        .find(|port| !is_port(*port))
}

/// Does `work` with what is shared when that has nothing `to_wait` for. The `wait` itself keeps nobody else from it, so
/// there may be something more to wait for then.
pub fn settled<S, R>(
    shared: &Mutex<S>,
    to_wait: impl Fn(&mut S) -> bool,
    wait: impl Fn(),
    work: impl FnOnce(&mut S) -> R,
) -> R {
    loop {
        let mut held = shared.lock().unwrap_or_else(PoisonError::into_inner);
        if !to_wait(&mut held) {
            return work(&mut held);
        }
        drop(held);
        wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::wire::CopySays;
    use crate::wire::{Connection, Place};
    use std::cell::Cell;

    fn connection(port: u16) -> Connection {
        let place = |host, port| Place {
            address: std::net::IpAddr::from([10, 0, 0, host]),
            port,
        };
        Connection {
            source: place(1, port),
            destination: place(2, 9866),
        }
    }

    /// What comes in by port 3 leaves by port `to`.
    fn says(connection_s: u16, to: u32) -> EntrySays {
        EntrySays {
            of: Segments {
                port: 3,
                marked: false,
                connection: connection(connection_s),
            },
            copies: vec![CopySays {
                port: to,
                position: 0,
                to: None,
                connection: None,
            }],
        }
    }

    fn entry(says: &EntrySays) -> (Key, Entry) {
        let copies = says.copies().expect("right");
        (says.of.key(), Entry::new(&copies).expect("few enough"))
    }

    fn names(entries: Vec<EntrySays>, removed: Vec<Segments>) -> Answer {
        Answer {
            entries,
            removed,
            ..Answer::default()
        }
    }

    fn keys<'a>(all: impl IntoIterator<Item = &'a Key>) -> HashSet<Key> {
        all.into_iter().copied().collect()
    }

    #[test]
    fn what_is_replaced_goes_before_it_is_made() {
        let there: HashMap<Key, Entry> = (1..=4).map(|n| entry(&says(n, 4))).collect();
        let mut wrong = says(4, 4);
        wrong.copies.clear();
        let answer = names(
            vec![
                says(1, 4),
                says(2, 5),
                says(3, 5),
                wrong,
                says(5, 4),
                says(6, 4),
            ],
            vec![says(3, 4).of, says(7, 4).of],
        );
        let stranger = says(8, 4).of.key();
        let batch = Batch::of(&answer, &there, &[stranger]);
        let key = |n| says(n, 4).of.key();
        assert_eq!(
            keys(&batch.remove),
            keys(&[key(2), key(3), key(7), stranger])
        );
        let made = batch.make.iter().map(|(key, _)| key);
        assert_eq!(
            keys(made),
            keys(&[key(2), key(5), key(6)]),
            "what is removed, too, is not made"
        );
        assert_eq!(batch.right, [says(1, 4).of]);
        assert_eq!(batch.wrong[0].0, says(4, 4).of);
    }

    #[test]
    fn entries_of_what_is_no_port_are_found() {
        let there: HashMap<Key, Entry> = [says(1, 4), says(2, 5)].iter().map(entry).collect();
        let gone = |port: u32| astray(&there, |other| other != port);
        assert_eq!(gone(6), []);
        assert_eq!(gone(5), [says(2, 5).of.key()]);
        assert_eq!(keys(&gone(3)), keys(there.keys()));
        let (key, entry) = entry(&says(1, 4));
        assert_eq!(not_a_port(&key, &entry, |port| port == 3), Some(4));
    }

    /// A map as the agent has it: what was removed is in use until it was waited for.
    #[derive(Default)]
    struct Map {
        unsettled: bool,
    }

    #[test]
    fn however_much_is_replaced_there_is_one_wait_and_others_go_on_in_it() {
        let there: HashMap<Key, Entry> = (0..1000).map(|n| entry(&says(1 + n, 4))).collect();
        let answer = names((0..1000).map(|n| says(1 + n, 5)).collect(), vec![]);
        let (map, waits) = (Mutex::new(Map::default()), Cell::new(0));
        let has = |answer: &Answer, there: &HashMap<Key, Entry>| {
            let batch = Batch::of(answer, there, &[]);
            map.lock().expect("free").unsettled |= !batch.remove.is_empty();
            let to_wait = |map: &mut Map| std::mem::take(&mut map.unsettled);
            let wait = || {
                waits.set(waits.get() + 1);
                assert!(map.try_lock().is_ok(), "nobody else is kept waiting");
            };
            settled(&map, to_wait, wait, |_| batch.make.len())
        };
        assert_eq!((has(&answer, &there), waits.get()), (1000, 1));
        assert_eq!(
            (has(&answer, &HashMap::new()), waits.get()),
            (1000, 1),
            "nothing to wait for"
        );
    }

    #[test]
    fn what_is_removed_during_a_wait_is_waited_for_too() {
        let (map, waits) = (Mutex::new(Map { unsettled: true }), Cell::new(0));
        let wait = || {
            waits.set(waits.get() + 1);
            map.lock().expect("free").unsettled = waits.get() < 3;
        };
        settled(&map, |map| std::mem::take(&mut map.unsettled), wait, |_| ());
        assert_eq!(waits.get(), 3);
    }
}
