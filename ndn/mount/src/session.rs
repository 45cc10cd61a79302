//! A mount from its beginning to its end: of a repository in this process, or of one elsewhere.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use fuser::{Config, Filesystem, MountOption, Session, SessionACL, SessionUnmounter};
use ndn_packet::Name;
use ndn_repo::{PutOptions, Repo};

use crate::attr::Owner;
use crate::error::MountError;
use crate::local::{Keeping, Local, LocalFs};
use crate::remote::{Remote, RemoteFs, RemoteOptions};

/// How often what was closed is made durable.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// How long those who have files open may go on after the mount's end was asked for.
const PATIENCE: Duration = Duration::from_secs(5);
/// Calls that are answered at once, from a disk.
const THREADS: usize = 4;
/// As many from the network: most of them wait.
const REMOTE_THREADS: usize = 16;
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
    /// Which file system the path leads to as long as it is this one.
    device: Option<(u32, u32)>,
    unmounter: Mutex<SessionUnmounter>,
    session: Option<JoinHandle<io::Result<()>>>,
    ended: Receiver<()>,
    on_end: OnEnd,
    behind: Option<Behind>,
}

/// What is to be done when it is unmounted.
type OnEnd = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// What lies behind a mount, and ends with it.
enum Behind {
    Local {
        local: Arc<Local>,
        /// Dropped, it ends the thread that syncs.
        stop: Sender<()>,
        syncing: JoinHandle<()>,
    },
    Remote(Arc<Remote>),
}

/// How the kernel mounts it.
struct Terms {
    read_only: bool,
    allow_other: bool,
    /// The kernel holds calls against modes. For each new file it asks for its folder's anew.
    modes_by_kernel: bool,
    threads: usize,
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
        check_point(path)?;
        let keeping = Keeping {
            put: PutOptions {
                version: None,
                size: None,
                ..options.put.clone()
            },
            versions: options.versions,
        };
        let root = options.root.clone();
        let local = Arc::new(Local::new(repo, root, store.to_owned(), owner(), keeping));
        let terms = Terms {
            read_only: options.read_only,
            allow_other: options.allow_other,
            // Where the owner alone gets in, it is less to do it here.
            modes_by_kernel: options.allow_other,
            threads: THREADS,
        };
        let filesystem = LocalFs::new(local.clone(), !terms.modes_by_kernel);
        let mut mount = Self::start(filesystem, path, &terms)?;
        let (stop, syncing) = sync_thread(local.clone()).map_err(|error| MountError::Session {
            path: path.to_owned(),
            error,
        })?;
        mount.behind = Some(Behind::Local {
            local,
            stop,
            syncing,
        });
        Ok(mount)
    }

    /// Mounts a folder of a repository elsewhere at the folder `path`, to be read.
    ///
    /// # Errors
    /// No FUSE here, what is wrong with `path`, no forwarder, or nothing of that name.
    pub fn remote(path: &Path, options: RemoteOptions) -> Result<Self, MountError> {
        check_point(path)?;
        let terms = Terms {
            read_only: true,
            allow_other: options.allow_other,
            modes_by_kernel: true,
            threads: REMOTE_THREADS,
        };
        let remote = Arc::new(Remote::open(options, owner())?);
        let mut mount = Self::start(RemoteFs(remote.clone()), path, &terms)?;
        mount.behind = Some(Behind::Remote(remote));
        Ok(mount)
    }

    fn start(filesystem: impl Filesystem, path: &Path, terms: &Terms) -> Result<Self, MountError> {
        raise_open_files();
        let failed = |error| MountError::Session {
            path: path.to_owned(),
            error,
        };
        let mut session = Session::new(filesystem, path, &config(terms)).map_err(failed)?;
        let unmounter = session.unmount_callable();
        let (end, ended) = channel();
        let on_end = OnEnd::default();
        let told = on_end.clone();
        let session = std::thread::Builder::new()
            .name(String::from("mount"))
            .spawn(move || {
                let result = session.run().or_else(ends_well);
                // Whoever waits may be gone.
                let _ = end.send(());
                let told = told.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(told) = told {
                    told();
                }
                result
            })
            .map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            device: device(path),
            unmounter: Mutex::new(unmounter),
            session: Some(session),
            ended,
            on_end,
            behind: None,
        })
    }

    /// Has `told` called, on a thread of the mount's, when somebody unmounts it. Not called where that has happened before:
    /// ask [`Mount::wait`] afterwards.
    pub fn on_end(&self, told: impl FnOnce() + Send + 'static) {
        *self.on_end.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(told));
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
        // What is said of it waits: what was written is published first.
        let detached = self.detach().map_err(failed);
        let has_ended = self.wait(PATIENCE);
        if let Some(Behind::Remote(remote)) = &self.behind {
            // Nobody waits any longer for what will not come.
            remote.stop();
        }
        if let Some(Behind::Local {
            local,
            stop,
            syncing,
        }) = self.behind.take()
        {
            drop(stop);
            // It has said what went wrong.
            let _ = syncing.join();
            // Those who still have something open are served until the process ends.
            local
                .close_all()
                .map_err(|errno| failed(io::Error::from_raw_os_error(errno.code())))?;
        }
        match has_ended || session.is_finished() {
            true => session
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
                .map_err(failed)?,
            false => {
                tracing::warn!(path = %self.path.display(), "unmounting while files are open: further calls on them fail");
            }
        }
        detached
    }

    /// Takes it away from its path, unless somebody has done so, and perhaps mounted something else there.
    fn detach(&self) -> io::Result<()> {
        if self.device.is_some() && device(&self.path) != self.device {
            return Ok(());
        }
        if rustix::mount::unmount(&self.path, rustix::mount::UnmountFlags::DETACH).is_ok() {
            return Ok(());
        }
        // Not root: by the helper.
        let mut unmounter = self
            .unmounter
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        unmounter.unmount()
    }
}

/// An unmount between two looks of the kernel at a request that a thread takes shows as ECONNABORTED instead of ENODEV
/// (`fuse_dev_do_read`): it is the end of the session like any other.
fn ends_well(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::ConnectionAborted => Ok(()),
        _ => Err(error),
    }
}

/// Numbers of the file system at a path; asks the kernel alone, not the file system.
fn device(path: &Path) -> Option<(u32, u32)> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    let found = statx(CWD, path, flags, StatxFlags::empty()).ok()?;
    Some((found.stx_dev_major, found.stx_dev_minor))
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(error) = self.finish() {
            tracing::error!(%error, "unmount failed");
        }
    }
}

fn owner() -> Owner {
    Owner {
        uid: rustix::process::getuid().as_raw(),
        gid: rustix::process::getgid().as_raw(),
    }
}

fn config(terms: &Terms) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(String::from("trunkline")),
        MountOption::Subtype(String::from("ndn")),
        MountOption::NoSuid,
        MountOption::NoDev,
        MountOption::NoAtime,
    ];
    if terms.modes_by_kernel {
        config.mount_options.push(MountOption::DefaultPermissions);
    }
    if terms.read_only {
        config.mount_options.push(MountOption::RO);
    }
    if terms.allow_other {
        config.acl = SessionACL::All;
    }
    config.n_threads = Some(terms.threads);
    config
}

/// Whether anything can be mounted at a folder.
fn check_point(path: &Path) -> Result<(), MountError> {
    if !Path::new("/dev/fuse").exists() {
        return Err(MountError::NoFuse);
    }
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
                    tracing::warn!(?error, "sync failed; trying again in 1 s");
                }
            }
        })?;
    Ok((stop, thread))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_connection_that_is_gone_is_a_good_end() {
        let of = |errno: rustix::io::Errno| ends_well(errno.into());
        assert!(of(rustix::io::Errno::CONNABORTED).is_ok());
        assert!(of(rustix::io::Errno::IO).is_err());
    }
}
