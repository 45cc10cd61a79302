//! Handles: what is open, by the numbers that the kernel knows it by.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fuser::Errno;

/// All that is open.
#[derive(Debug)]
pub struct Handles<H> {
    inner: Mutex<(u64, HashMap<u64, H>)>,
}

impl<H: Clone> Handles<H> {
    /// Nothing is open.
    pub fn new() -> Self {
        Self {
            inner: Mutex::new((1, HashMap::new())),
        }
    }

    /// Gives something a number.
    pub fn add(&self, handle: H) -> u64 {
        let mut inner = lock(&self.inner);
        let number = inner.0;
        inner.0 += 1;
        inner.1.insert(number, handle);
        number
    }

    /// What a number stands for.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn get(&self, number: u64) -> Result<H, Errno> {
        lock(&self.inner)
            .1
            .get(&number)
            .cloned()
            .ok_or(Errno::EBADF)
    }

    /// Nobody has it any more.
    pub fn remove(&self, number: u64) -> Option<H> {
        lock(&self.inner).1.remove(&number)
    }
}

/// The lock, whatever became of who had it before: nothing here is left half done.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
