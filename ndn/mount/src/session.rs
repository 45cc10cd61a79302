//! A mount from its beginning to its end.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fuser::{Config, Filesystem, MountOption, Session, SessionACL, SessionUnmounter};
use ndn_packet::Name;
use ndn_repo::{PutOptions, Repo};

use crate::attr::Owner;
use crate::error::MountError;
use crate::fuse::LocalFs;
use crate::local::{Keeping, Local};

/// How often what was closed is made durable.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// How long those who have files open may go on after the mount's end was asked for.
const PATIENCE: Duration = Duration::from_secs(5);
/// Calls that are answered at once.
const THREADS: usize = 4;
/// Open files that a mount may need.
const OPEN_FILES: u64 = 1 << 16;

/// How a repository is mounted. Start from the defaults and change fields.
#[derive(Debug, Clone, Default)]
pub struct MountOptions {
    /// The folder of the repository that is mounted; all of it, where this is the empty name.
    pub root: Name,
    /// How files are kept; name, version, size and times are the file system's.
    pub put: PutOptions,
    /// Versions kept of each file that is written here; all, where it is not given.
    pub versions: Option<usize>,
    /// Nothing may be changed.
    pub read_only: bool,
    /// Other users may use it, as modes say.
    pub allow_other: bool,
}

/// A mounted file system. Dropped, it is unmounted.
pub struct Mount {
    path: PathBuf,
    unmounter: Mutex<SessionUnmounter>,
    session: Option<JoinHandle<io::Result<()>>>,
    ended: Receiver<()>,
    local: Option<Arc<Local>>,
    /// Dropped, it ends the thread that syncs.
    syncing: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Mount {
    /// Mounts a repository, which lies in the folder `store`, at the folder `path`.
    ///
    /// # Errors
    /// No FUSE here, or what is wrong with `path`.
    pub fn local(
        repo: &Repo,
        store: &Path,
        path: &Path,
        options: &MountOptions,
    ) -> Result<Self, MountError> {
        let owner = Owner {
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
        };
        let keeping = Keeping {
            put: PutOptions {
                version: None,
                size: None,
                ..options.put.clone()
            },
            versions: options.versions,
        };
        let root = options.root.clone();
        let local = Arc::new(Local::new(repo, root, store.to_owned(), owner, keeping));
        let mut mount = Self::start(LocalFs(local.clone()), path, options)?;
        mount.syncing = Some(
            sync_thread(local.clone()).map_err(|error| MountError::Session {
                path: path.to_owned(),
                error,
            })?,
        );
        mount.local = Some(local);
        Ok(mount)
    }

    /// Mounts any file system.
    pub(crate) fn start<F: Filesystem>(
        filesystem: F,
        path: &Path,
        options: &MountOptions,
    ) -> Result<Self, MountError> {
        if !Path::new("/dev/fuse").exists() {
            return Err(MountError::NoFuse);
        }
        check_folder(path)?;
        raise_open_files();
        let failed = |error| MountError::Session {
            path: path.to_owned(),
            error,
        };
        let mut session = Session::new(filesystem, path, &config(options)).map_err(failed)?;
        let unmounter = session.unmount_callable();
        let (end, ended) = channel();
        let session = std::thread::Builder::new()
            .name(String::from("mount"))
            .spawn(move || {
                let result = session.run();
                // Whoever waits may be gone.
                let _ = end.send(());
                result
            })
            .map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            unmounter: Mutex::new(unmounter),
            session: Some(session),
            ended,
            local: None,
            syncing: None,
        })
    }

    /// Waits until it is unmounted, by anybody, or `time` is over; tells whether it is.
    pub fn wait(&self, time: Duration) -> bool {
        !matches!(
            self.ended.recv_timeout(time),
            Err(RecvTimeoutError::Timeout)
        )
    }

    /// Unmounts it: at once for those who come now, and after a few seconds for those who have something open. Whatever was
    /// written is published and durable when this returns.
    ///
    /// # Errors
    /// What the system said, or the file system's last words.
    pub fn unmount(mut self) -> Result<(), MountError> {
        self.finish()
    }

    fn finish(&mut self) -> Result<(), MountError> {
        let Some(session) = self.session.take() else {
            return Ok(());
        };
        let failed = |error| MountError::Session {
            path: self.path.clone(),
            error,
        };
        let detached = rustix::mount::unmount(&self.path, rustix::mount::UnmountFlags::DETACH);
        if detached.is_err() {
            // Not root: by the helper. Or somebody else has unmounted it already.
            let mut unmounter = self
                .unmounter
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            unmounter.unmount().map_err(failed)?;
        }
        let deadline = Instant::now() + PATIENCE;
        while !session.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        if let Some((stop, thread)) = self.syncing.take() {
            drop(stop);
            // It has said what went wrong.
            let _ = thread.join();
        }
        if let Some(local) = self.local.take() {
            // Those who still have something open are served until the process ends.
            local
                .close_all()
                .map_err(|errno| failed(io::Error::from_raw_os_error(errno.code())))?;
        }
        match session.is_finished() {
            true => session
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
                .map_err(failed),
            false => {
                tracing::warn!(path = %self.path.display(), "some still have files open; what they write from here on is lost");
                Ok(())
            }
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(error) = self.finish() {
            tracing::error!(%error, "not unmounted in good order");
        }
    }
}

fn config(options: &MountOptions) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(String::from("trunkline")),
        MountOption::Subtype(String::from("ndn")),
        MountOption::DefaultPermissions,
        MountOption::NoSuid,
        MountOption::NoDev,
        MountOption::NoAtime,
    ];
    if options.read_only {
        config.mount_options.push(MountOption::RO);
    }
    if options.allow_other {
        config.acl = SessionACL::All;
    }
    config.n_threads = Some(THREADS);
    config
}

fn check_folder(path: &Path) -> Result<(), MountError> {
    let wrong = |cause: String| MountError::Folder {
        path: path.to_owned(),
        cause,
    };
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(wrong(String::from("is no folder; name an empty one"))),
        Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => Err(wrong(format!(
            "a mount that has died is still there; take it away with umount -l {}",
            path.display()
        ))),
        Err(error) => Err(wrong(format!("{error}; make the folder first"))),
    }
}

/// Each open file is two descriptors here.
fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = limit
        .maximum
        .map_or(OPEN_FILES, |most| most.min(OPEN_FILES));
    if limit.current.is_some_and(|now| now < wanted) {
        limit.current = Some(wanted);
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::debug!(%error, "as many open files as before");
        }
    }
}

fn sync_thread(local: Arc<Local>) -> io::Result<(Sender<()>, JoinHandle<()>)> {
    let (stop, stopped) = channel::<()>();
    let thread = std::thread::Builder::new()
        .name(String::from("sync"))
        .spawn(move || {
            while stopped.recv_timeout(SYNC_EVERY) == Err(RecvTimeoutError::Timeout) {
                if let Err(error) = local.sync() {
                    tracing::warn!(?error, "not durable yet; tried again in a second");
                }
            }
        })?;
    Ok((stop, thread))
}
