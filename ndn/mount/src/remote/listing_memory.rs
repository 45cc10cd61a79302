//! The memory that all listings share: one that is to grow by what a peer sends reserves its bytes first, and is refused
//! when there are none left.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::RemoteError;

/// ListingMemory for so many bytes in all.
#[derive(Debug, Clone)]
pub struct ListingMemory {
    reserved: Arc<AtomicUsize>,
    most: usize,
}

impl ListingMemory {
    /// ListingMemory for `most` bytes.
    pub fn new(most: usize) -> Self {
        Self {
            reserved: Arc::default(),
            most,
        }
    }

    /// Nothing yet.
    pub fn reserve(&self) -> Reservation {
        Reservation {
            memory: self.clone(),
            bytes: 0,
        }
    }
}

/// What one listing has of it; given back when it is dropped.
#[derive(Debug)]
pub struct Reservation {
    memory: ListingMemory,
    bytes: usize,
}

impl Reservation {
    /// Its bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reserves `bytes` more.
    ///
    /// # Errors
    /// There are not so many left.
    pub fn grow(&mut self, bytes: usize) -> Result<(), RemoteError> {
        let most = self.memory.most;
        let fits = |taken: usize| taken.checked_add(bytes).filter(|taken| *taken <= most);
        self.memory
            .reserved
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, fits)
            .map_err(|taken| {
                RemoteError::NoRoom(format!(
                    "listings take {taken} bytes of memory and may take {most}: there is no room for {bytes} more; list \
                     fewer great folders at once"
                ))
            })?;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.memory.reserved.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_is_given_back() {
        let memory = ListingMemory::new(100);
        let (mut a, mut b) = (memory.reserve(), memory.reserve());
        a.grow(60).expect("room");
        b.grow(40).expect("room");
        assert!(matches!(b.grow(1), Err(RemoteError::NoRoom(_))));
        assert!(a.grow(usize::MAX).is_err());
        drop(a);
        b.grow(60).expect("room");
        assert!(b.grow(1).is_err());
    }
}
