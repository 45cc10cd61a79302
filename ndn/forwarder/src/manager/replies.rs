//! Answers to commands, kept so that a command that is sent again is not done again. Bounded; the oldest go first.

use bytes::Bytes;
use ndn_packet::Name;
use std::collections::{HashMap, VecDeque};

/// Answers kept.
const MAX_REPLIES: usize = 1024;
/// Bytes of them and of the commands' names.
pub(super) const MAX_BYTES: usize = 8 << 20;

/// The answers, by the names of the commands.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    by_name: HashMap<Name, Bytes>,
    order: VecDeque<Name>,
    bytes: usize,
}

/// Bytes that an answer takes.
fn size(name: &Name, wire: &Bytes) -> usize {
    2 * (name.value().len() + 2 * size_of::<Name>()) + wire.len()
}

impl Replies {
    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.bytes
    }

    /// The answer that a command got.
    pub(crate) fn get(&self, name: &Name) -> Option<&Bytes> {
        self.by_name.get(name)
    }

    /// Keeps the answer to a command.
    pub(crate) fn insert(&mut self, name: &Name, wire: &Bytes) {
        let name = name.compact();
        self.bytes += size(&name, wire);
        self.order.push_back(name.clone());
        if let Some(old) = self.by_name.insert(name.clone(), wire.clone()) {
            self.bytes -= size(&name, &old);
        }
        while (self.order.len() > MAX_REPLIES || self.bytes > MAX_BYTES)
            && let Some(oldest) = self.order.pop_front()
        {
            if let Some(old) = self.by_name.remove(&oldest) {
                self.bytes -= size(&oldest, &old);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounded_in_number_and_in_bytes() {
        let mut replies = Replies::default();
        let wire = |len| Bytes::from(vec![0; len]);
        for n in 0..5000u64 {
            let name = Name::new().append_segment(n % 2500);
            replies.insert(&name, &wire(n as usize * 3 % 16_000));
            assert!(replies.bytes <= MAX_BYTES && replies.by_name.len() <= MAX_REPLIES);
            let recount = replies.by_name.iter().map(|(name, wire)| size(name, wire));
            assert_eq!(replies.bytes, recount.sum::<usize>());
            assert_eq!(
                replies.get(&name).map(Bytes::len),
                Some(n as usize * 3 % 16_000)
            );
        }
    }
}
