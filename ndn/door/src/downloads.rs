//! How far downloads are: the browser saves the file itself, however large, and the page shows what was sent.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Downloads remembered; older ones are forgotten.
const KEPT: usize = 256;
/// Longest id.
const MAX_ID: usize = 40;

/// What became of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// It goes on.
    Running,
    /// All was sent.
    Done,
    /// The other side went away.
    Stopped,
    /// It was cut: the content does not verify, or could not be read.
    Failed,
}

/// One download.
#[derive(Debug)]
pub struct Download {
    total: u64,
    at: AtomicU64,
    state: AtomicU8,
}

impl Download {
    /// Tells that bytes up to `at` of the file were sent.
    pub fn reached(&self, at: u64) {
        self.at.store(at, Ordering::Relaxed);
    }

    /// Tells how it ended.
    pub fn ended(&self, state: State) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    /// Bytes sent, bytes of the file, and how it stands.
    pub fn told(&self) -> (u64, u64, State) {
        let state = match self.state.load(Ordering::Relaxed) {
            0 => State::Running,
            1 => State::Done,
            2 => State::Stopped,
            _ => State::Failed,
        };
        (self.at.load(Ordering::Relaxed), self.total, state)
    }
}

/// Whether a download can have this id: letters, digits and `-`, at most 40.
pub fn is_id(id: &str) -> bool {
    (1..=MAX_ID).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// Downloads of late, the newest last.
#[derive(Debug, Default)]
pub struct Downloads(Mutex<VecDeque<(String, Arc<Download>)>>);

impl Downloads {
    /// Begins a download, or goes on with one after a break. `None` where `id` is none.
    pub fn begin(&self, id: &str, at: u64, total: u64) -> Option<Arc<Download>> {
        if !is_id(id) {
            return None;
        }
        let download = Arc::new(Download {
            total,
            at: AtomicU64::new(at),
            state: AtomicU8::new(State::Running as u8),
        });
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(known, _)| known != id);
        if all.len() == KEPT {
            all.pop_front();
        }
        all.push_back((id.to_owned(), download.clone()));
        Some(download)
    }

    /// The download of that id.
    pub fn find(&self, id: &str) -> Option<Arc<Download>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter()
            .find(|(known, _)| known == id)
            .map(|(_, download)| download.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_remembered_and_no_more() {
        let downloads = Downloads::default();
        for n in 0..10_000 {
            let download = downloads.begin(&format!("id-{n}"), 0, 7).expect("an id");
            download.reached(5);
        }
        assert!(downloads.find("id-9000").is_none());
        let last = downloads.find("id-9999").expect("kept");
        assert_eq!(last.told(), (5, 7, State::Running));
        last.ended(State::Failed);
        assert_eq!(last.told().2, State::Failed);
        // The same one goes on.
        downloads.begin("id-9999", 3, 7).expect("an id");
        assert_eq!(
            downloads.find("id-9999").expect("kept").told(),
            (3, 7, State::Running)
        );
        for id in ["", "a b", "<x>", &"x".repeat(41)] {
            assert!(downloads.begin(id, 0, 1).is_none(), "{id}");
        }
    }
}
