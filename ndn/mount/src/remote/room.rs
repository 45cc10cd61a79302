//! Room in memory that many share: whoever is to grow by what a peer sends takes room first, and is refused when there is
//! none.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::RemoteError;

/// Room for so many bytes in all.
#[derive(Debug, Clone)]
pub struct Room {
    taken: Arc<AtomicUsize>,
    most: usize,
}

impl Room {
    /// Room for `most` bytes.
    pub fn new(most: usize) -> Self {
        Self {
            taken: Arc::default(),
            most,
        }
    }

    /// Takes nothing yet.
    pub fn place(&self) -> Place {
        Place {
            room: self.clone(),
            bytes: 0,
        }
    }
}

/// What one has taken of it; given back when it is dropped.
#[derive(Debug)]
pub struct Place {
    room: Room,
    bytes: usize,
}

impl Place {
    /// What is taken.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes `bytes` more.
    ///
    /// # Errors
    /// There is no room for so many.
    pub fn grow(&mut self, bytes: usize) -> Result<(), RemoteError> {
        let most = self.room.most;
        let fits = |taken: usize| taken.checked_add(bytes).filter(|taken| *taken <= most);
        self.room
            .taken
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

impl Drop for Place {
    fn drop(&mut self) {
        self.room.taken.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_given_back() {
        let room = Room::new(100);
        let (mut a, mut b) = (room.place(), room.place());
        a.grow(60).expect("room");
        b.grow(40).expect("room");
        assert!(matches!(b.grow(1), Err(RemoteError::NoRoom(_))));
        assert!(a.grow(usize::MAX).is_err());
        drop(a);
        b.grow(60).expect("room");
        assert!(b.grow(1).is_err());
    }
}
