//! What outlives the agent: programs and maps, pinned in a BPF filesystem.
//!
//! ```text
//!   /sys/fs/bpf/trunkline-mirror/         the agent's lock is on this folder
//!     off/                                the lock of `trunkline mirror off` is on this one
//!     standing -> {"name": …}             what the controller has to count on (standing.rs), as a link's target; of a
//!                                         bridge's agent, which switch it is (switch/identity.rs)
//!     layout-0123456789abcdef/            one for each layout of the maps' entries
//!       mr_snd_flows, mr_rcv_flows, …     the maps
//!       mr_ingress, mr_egress             the programs that are attached
//!     clsact-7/                           interface 7 got its clsact from an agent
//! ```

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use aya::maps::MapInfo;
use aya::programs::{ProgramInfo, SchedClassifier};
use rustix::fs::{FlockOperation, flock, statfs};
use rustix::io::Errno;

use crate::foreign;
use crate::layout::Key;
use crate::maps;
use crate::sockets::{End, Sockets};
use crate::tc::Hook;

/// Where an agent pins unless it is told otherwise.
pub const DEFAULT: &str = "/sys/fs/bpf/trunkline-mirror";

const BPF_FS_MAGIC: u64 = 0xcafe_4a11;
const LOOKS: usize = 5;
const LOOK: Duration = Duration::from_millis(20);
const LAYOUT: &str = "layout-";
const CLSACT: &str = "clsact-";
const OFF: &str = "off";
const STANDING: &str = "standing";
/// What tells layouts apart, made of the headers that say them.
const OURS: &str = env!("MIRROR_LAYOUT");

/// Pins can't be used.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The folder is not in a BPF filesystem.
    #[error(
        "{}: not in a BPF filesystem; `mount -t bpf bpf /sys/fs/bpf`, or run `trunkline mirror doctor --fix`",
        path.display()
    )]
    NoBpfFilesystem {
        /// The folder.
        path: PathBuf,
    },
    /// An agent has the pins already.
    #[error("{}: another agent runs with these pins; stop it, or name another folder", path.display())]
    Running {
        /// The folder.
        path: PathBuf,
    },
    /// They are being removed.
    #[error(
        "{}: `trunkline mirror off` takes the programs off this host; wait for its end",
        path.display()
    )]
    GoingOff {
        /// The folder.
        path: PathBuf,
    },
    /// They are those of a host's programs.
    #[error("{}: pins of a host's programs, not of a bridge's; name another folder with switch.pin", path.display())]
    OfAHost {
        /// The folder.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("{}: {error}; root may, or CAP_BPF and CAP_NET_ADMIN", path.display())]
    System {
        /// What was to be used.
        path: PathBuf,
        /// Why it can't be.
        error: io::Error,
    },
}

/// The folder of one host's, or one network namespace's, agent.
#[derive(Clone, Debug)]
pub struct Pins {
    folder: PathBuf,
    layout: &'static str,
    /// The maps; each program of ours uses the first two.
    maps: &'static [&'static str],
}

/// The right to be the one agent of some pins, as long as it is kept.
#[derive(Debug)]
pub struct Lock {
    _folder: File,
}

impl Pins {
    /// Those in a folder, which needs not be there.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self::of(folder, OURS, &maps::NAMES)
    }

    /// Those of other programs than a host's.
    #[must_use]
    pub fn of(folder: &Path, layout: &'static str, maps: &'static [&'static str]) -> Self {
        Self {
            folder: folder.to_owned(),
            layout,
            maps,
        }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where maps and programs of this layout are pinned.
    #[must_use]
    pub fn layout(&self) -> PathBuf {
        self.folder.join(format!("{LAYOUT}{}", self.layout))
    }

    /// Whether there are any of this layout.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.layout().join(self.maps[0]).exists()
    }

    /// Makes the folder.
    ///
    /// # Errors
    /// It is not in a BPF filesystem, or the system refuses.
    pub fn make(&self) -> Result<(), PinError> {
        let there = self.folder.ancestors().find(|path| path.exists());
        if !is_bpf(there.unwrap_or(Path::new("/"))) {
            return Err(PinError::NoBpfFilesystem {
                path: self.folder.clone(),
            });
        }
        make(&self.folder)
    }

    /// Makes the folder for this layout in it.
    ///
    /// # Errors
    /// The system refuses.
    pub fn make_layout(&self) -> Result<(), PinError> {
        make(&self.layout())
    }

    /// Becomes the one agent; the folder must be there.
    ///
    /// # Errors
    /// There is one.
    pub fn lock(&self) -> Result<Lock, PinError> {
        lock(&self.folder)?.ok_or_else(|| PinError::Running {
            path: self.folder.clone(),
        })
    }

    /// Becomes the one who takes the programs off this host; no agent starts meanwhile. The folder must be there.
    ///
    /// # Errors
    /// Somebody else does.
    pub fn lock_off(&self) -> Result<Lock, PinError> {
        let path = self.folder.join(OFF);
        make(&path)?;
        lock(&path)?.ok_or_else(|| PinError::GoingOff {
            path: self.folder.clone(),
        })
    }

    /// Whether an agent runs with these pins.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        is_locked(&self.folder)
    }

    /// Whether somebody takes the programs off this host.
    #[must_use]
    pub fn is_going_off(&self) -> bool {
        is_locked(&self.folder.join(OFF))
    }

    /// What an agent has written down for the next one, if it has.
    #[must_use]
    pub fn standing<T: serde::de::DeserializeOwned>(&self) -> Option<T> {
        let text = std::fs::read_link(self.folder.join(STANDING)).ok()?;
        serde_json::from_slice(text.as_os_str().as_bytes()).ok()
    }

    /// Writes it down, as the target of a symbolic link: nothing else in a BPF filesystem holds a text.
    ///
    /// # Errors
    /// The system refuses.
    pub fn set_standing<T: serde::Serialize>(&self, standing: &T) -> Result<(), PinError> {
        let path = self.folder.join(STANDING);
        let new = self.folder.join("standing-new");
        let written = serde_json::to_string(standing)
            .map_err(io::Error::other)
            .and_then(|text| {
                // Of one who was ended in the middle of this.
                let _ = std::fs::remove_file(&new);
                std::os::unix::fs::symlink(text, &new)?;
                std::fs::rename(&new, &path)
            });
        written.map_err(|error| PinError::System { path, error })
    }

    /// The program that is pinned for a hook.
    #[must_use]
    pub fn program(&self, hook: Hook) -> Option<ProgramInfo> {
        program(&self.layout(), hook)
    }

    /// The same, to be attached.
    ///
    /// # Errors
    /// There is none, or the system refuses.
    pub fn open_program(&self, hook: Hook) -> Result<SchedClassifier, PinError> {
        open_program(&self.layout(), hook)
    }

    /// Whether a program uses the pinned maps.
    #[must_use]
    pub fn are_of(&self, program: &ProgramInfo) -> bool {
        let Ok(Some(uses)) = program.map_ids() else {
            return false;
        };
        // Not each program has a use for each map; the first tell.
        self.maps.iter().take(2).all(|name| {
            MapInfo::from_pin(self.layout().join(name)).is_ok_and(|map| uses.contains(&map.id()))
        })
    }

    /// Pins a program in the place of the one before.
    ///
    /// # Errors
    /// The system refuses.
    pub fn set_program(&self, hook: Hook, program: &mut SchedClassifier) -> Result<(), PinError> {
        let path = self.layout().join(hook.program());
        let failed = |error| PinError::System {
            path: path.clone(),
            error,
        };
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        program
            .pin(&path)
            .map_err(|error| failed(io::Error::other(error)))
    }

    /// Remembers that an interface got its clsact from an agent.
    ///
    /// # Errors
    /// The system refuses.
    pub fn remember_clsact(&self, interface: u32) -> Result<(), PinError> {
        let path = self.clsact(interface);
        match std::fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(PinError::System { path, error })
            }
            _ => Ok(()),
        }
    }

    /// Whether it did; forgotten with that.
    pub fn take_clsact(&self, interface: u32) -> bool {
        std::fs::remove_dir(self.clsact(interface)).is_ok()
    }

    fn clsact(&self, interface: u32) -> PathBuf {
        self.folder.join(format!("{CLSACT}{interface}"))
    }

    /// Those of other layouts: of an agent of another release.
    #[must_use]
    pub fn others(&self) -> Vec<Other> {
        let ours = self.layout();
        let all = std::fs::read_dir(&self.folder).into_iter().flatten();
        all.flatten()
            .map(|entry| entry.path())
            .filter(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name.starts_with(LAYOUT) && *path != ours
            })
            .map(|folder| Other { folder })
            .collect()
    }

    /// The flows of other layouts whose connection is still there; `None` where that can't be told.
    #[must_use]
    pub fn others_living(&self, sockets: &mut Sockets) -> Option<HashSet<Key>> {
        let mut living = HashSet::new();
        for other in self.others() {
            living.extend(other.living(sockets)?);
        }
        Some(living)
    }

    /// Removes the folders of other layouts.
    ///
    /// # Errors
    /// The system refuses.
    pub fn remove_others(&self) -> Result<(), PinError> {
        self.others()
            .iter()
            .try_for_each(|other| remove(&other.folder))
    }

    /// Removes all.
    ///
    /// # Errors
    /// The system refuses.
    pub fn remove(&self) -> Result<(), PinError> {
        remove(&self.folder)
    }
}

fn make(path: &Path) -> Result<(), PinError> {
    std::fs::create_dir_all(path).map_err(|error| PinError::System {
        path: path.to_owned(),
        error,
    })
}

/// The lock of a folder; `None` if somebody else has it.
fn lock(path: &Path) -> Result<Option<Lock>, PinError> {
    // Who only looks whether it is locked has it for a moment.
    for _ in 0..LOOKS {
        if let Some(lock) = try_lock(path, FlockOperation::NonBlockingLockExclusive)? {
            return Ok(Some(lock));
        }
        sleep(LOOK);
    }
    try_lock(path, FlockOperation::NonBlockingLockExclusive)
}

fn is_locked(path: &Path) -> bool {
    matches!(
        try_lock(path, FlockOperation::NonBlockingLockShared),
        Ok(None)
    )
}

fn try_lock(path: &Path, how: FlockOperation) -> Result<Option<Lock>, PinError> {
    let failed = |error| PinError::System {
        path: path.to_owned(),
        error,
    };
    let folder = File::open(path).map_err(failed)?;
    match flock(&folder, how) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(failed(error.into())),
    }
    // Whoever had it may have removed the folder: what is locked then is none that others find.
    let (locked, there) = (folder.metadata().map_err(failed)?, std::fs::metadata(path));
    let there = there.map_err(failed)?;
    if (locked.dev(), locked.ino()) != (there.dev(), there.ino()) {
        return Err(failed(io::ErrorKind::NotFound.into()));
    }
    Ok(Some(Lock { _folder: folder }))
}

/// What an agent of another release has pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    folder: PathBuf,
}

impl Other {
    /// Its program for a hook.
    #[must_use]
    pub fn program(&self, hook: Hook) -> Option<ProgramInfo> {
        program(&self.folder, hook)
    }

    /// The same, to be attached.
    ///
    /// # Errors
    /// There is none, or the system refuses.
    pub fn open_program(&self, hook: Hook) -> Result<SchedClassifier, PinError> {
        open_program(&self.folder, hook)
    }

    /// Has it send nothing new virtually.
    ///
    /// # Errors
    /// The system refuses.
    pub fn switch_off(&self) -> Result<(), PinError> {
        let path = self.folder.join("mr_config");
        match foreign::set_first_word(&path, 1) {
            Err(error) if path.exists() => Err(PinError::System { path, error }),
            _ => Ok(()),
        }
    }

    /// The flows that it has and whose connection is still there; none where its programs are not pinned.
    fn living(&self, sockets: &mut Sockets) -> Option<Vec<Key>> {
        let mut living = Vec::new();
        if Hook::ALL.iter().any(|hook| self.program(*hook).is_none()) {
            return Some(living);
        }
        for (name, end) in [("mr_snd_flows", End::Source), ("mr_rcv_flows", End::Target)] {
            let path = self.folder.join(name);
            if path.exists() {
                let keys = foreign::keys(&path).ok()?.into_iter();
                living.extend(keys.filter(|key| !sockets.is_gone(key, end)));
            }
        }
        Some(living)
    }
}

fn program(folder: &Path, hook: Hook) -> Option<ProgramInfo> {
    ProgramInfo::from_pin(folder.join(hook.program())).ok()
}

fn open_program(folder: &Path, hook: Hook) -> Result<SchedClassifier, PinError> {
    let path = folder.join(hook.program());
    SchedClassifier::from_pin(&path).map_err(|error| PinError::System {
        path,
        error: io::Error::other(error),
    })
}

fn remove(path: &Path) -> Result<(), PinError> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(PinError::System {
            path: path.to_owned(),
            error,
        }),
        _ => Ok(()),
    }
}

/// Whether a path is in a BPF filesystem.
#[must_use]
pub fn is_bpf(path: &Path) -> bool {
    statfs(path).is_ok_and(|about| about.f_type as u64 == BPF_FS_MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lock ends with the last process that has it: a child that another test starts has it until it is another
    /// program.
    fn eventually(holds: impl Fn() -> bool) {
        let end = std::time::Instant::now() + Duration::from_secs(30);
        while !holds() {
            assert!(std::time::Instant::now() < end, "not in 30 s");
            sleep(LOOK);
        }
    }

    #[test]
    fn a_lock_is_one_s_alone_and_of_the_folder_that_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let pins = Pins::at(&folder.path().join("pins"));
        make(pins.folder()).expect("made");
        let agent = pins.lock().expect("the agent");
        assert!(pins.is_locked() && !pins.is_going_off());
        assert!(matches!(pins.lock(), Err(PinError::Running { .. })));
        let off = pins.lock_off().expect("whoever takes it off");
        assert!(pins.is_going_off());
        assert!(matches!(pins.lock_off(), Err(PinError::GoingOff { .. })));
        let held = File::open(pins.folder()).expect("open");
        drop((agent, off));
        eventually(|| !pins.is_locked() && !pins.is_going_off());
        // One who had it open meanwhile has the lock of a folder that nobody finds any more.
        pins.remove().expect("removed");
        eventually(|| flock(&held, FlockOperation::NonBlockingLockExclusive).is_ok());
        assert!(matches!(pins.lock(), Err(PinError::System { .. })));
        make(pins.folder()).expect("made again");
        pins.lock().expect("the agent");
    }
}
