//! Room kept back, so that a disk that is full can still be emptied: the store below the index takes no change any more
//! once it was refused room, not even one that removes.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::disk::Disk;

/// Where it lies.
const PATH: &str = "ballast";
/// Bytes kept back.
const BYTES: u64 = 8 << 20;
/// With less than this free, changes need what is kept back.
const LOW: u64 = 1 << 20;

/// The room that is kept back.
#[derive(Debug)]
pub(crate) struct Ballast {
    disk: Arc<dyn Disk>,
    held: Mutex<bool>,
}

impl Ballast {
    /// Keeps back room on `disk`, if there is some.
    pub fn new(disk: &Arc<dyn Disk>) -> Self {
        let ballast = Self {
            disk: disk.clone(),
            held: Mutex::new(false),
        };
        if let Ok(file) = disk.open(Path::new(PATH)) {
            // A copy of the folder has the name, and none of the room.
            if let Err(error) = file.reserve(0..BYTES) {
                tracing::debug!(%error, "what is kept back may be no room");
            }
            *ballast.held() = true;
        } else {
            ballast.restore();
        }
        ballast
    }

    fn held(&self) -> std::sync::MutexGuard<'_, bool> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_low(&self) -> bool {
        self.disk.free_bytes().is_ok_and(|free| free < LOW)
    }

    /// Whether something may be added: what is kept back, or lent, is for removing.
    ///
    /// # Errors
    /// `StorageFull`.
    pub fn check_room(&self) -> io::Result<()> {
        let least = if *self.held() { LOW } else { BYTES + LOW };
        match self.disk.free_bytes() {
            Ok(free) if free < least => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }

    /// Gives the room to the change that follows, if there is no other.
    pub fn lend(&self) {
        if !self.is_low() {
            return;
        }
        let mut held = self.held();
        if std::mem::take(&mut *held) {
            tracing::warn!(
                "disk full: the space reserved for removing things is in use; free some space"
            );
            if let Err(error) = self.disk.remove(Path::new(PATH)) {
                tracing::warn!(%error, "can't release the space reserved for removing things");
            }
        }
    }

    /// Keeps room back again, once there is some.
    pub fn restore(&self) {
        let mut held = self.held();
        if *held || self.disk.free_bytes().is_ok_and(|free| free < BYTES + LOW) {
            return;
        }
        let kept = self
            .disk
            .create(Path::new(PATH))
            .and_then(|f| f.reserve(0..BYTES));
        match kept {
            Ok(()) => *held = true,
            Err(error) => {
                tracing::debug!(%error, "no room is kept back");
                // What is there of it keeps nothing back.
                let _ = self.disk.remove(Path::new(PATH));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;

    #[test]
    fn room_is_kept_back_and_given() {
        let folder = tempfile::tempdir().expect("a folder");
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(folder.path()).expect("a disk"));
        let ballast = Ballast::new(&disk);
        assert!(folder.path().join(PATH).exists() && *ballast.held());
        ballast.check_room().expect("there is room");
        ballast.lend();
        assert!(*ballast.held(), "nobody needs it");
        drop(ballast);
        assert!(*Ballast::new(&disk).held(), "it is there already");
    }

    #[test]
    fn a_copy_of_the_folder_keeps_room_back_as_well() {
        let folder = tempfile::tempdir().expect("a folder");
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(folder.path()).expect("a disk"));
        std::fs::File::create(folder.path().join(PATH)).expect("as cp leaves it");
        assert!(*Ballast::new(&disk).held());
        let found = std::fs::metadata(folder.path().join(PATH)).expect("there");
        let reserved = std::os::unix::fs::MetadataExt::blocks(&found) * 512;
        assert!(reserved >= BYTES, "{reserved} bytes");
    }
}
