//! Looks whether the files have changed, on a thread of its own: no loop waits for a file system.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::words::utc;
use super::{CredentialFiles, Current, Shared};

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// A certificate that expires within this time is complained about, so often; not by what runs for a moment.
const SOON: Duration = Duration::from_secs(14 * 86_400);
const COMPLAIN: Duration = Duration::from_secs(86_400);
const COMPLAIN_FIRST: Duration = Duration::from_secs(60);

/// What tells that a file has changed: device, inode, size, mode, and time of the last change.
pub(super) type Stamp = Option<(u64, u64, u64, u32, i64, i64)>;

fn stamp(file: &Path) -> Stamp {
    let about = std::fs::metadata(file).ok()?;
    Some((
        about.dev(),
        about.ino(),
        about.size(),
        about.mode(),
        about.ctime(),
        about.ctime_nsec(),
    ))
}

pub(super) fn stamps(files: &CredentialFiles) -> [Stamp; 3] {
    [&files.certificate, &files.key, &files.ca].map(|file| stamp(file))
}

/// Watches for as long as somebody uses what was read from the files when they were as `seen`.
pub(super) fn start(shared: &Arc<Shared>, seen: [Stamp; 3]) {
    let watched = Arc::downgrade(shared);
    let started = std::thread::Builder::new()
        .name("ndn-certs".to_owned())
        .spawn(move || watch(&watched, seen));
    if let Err(error) = started {
        tracing::warn!(%error, "changed certificates are not noticed before the next start");
    }
}

fn watch(watched: &Weak<Shared>, mut seen: [Stamp; 3]) {
    let mut changing = None;
    let mut complain_at = Instant::now() + COMPLAIN_FIRST;
    loop {
        {
            let Some(shared) = watched.upgrade() else {
                return;
            };
            let now = stamps(&shared.files);
            if now == seen {
                changing = None;
            } else if changing.replace(now) == Some(now) {
                // Nothing is written any more: the three belong together, if ever.
                seen = now;
                changing = None;
                read_again(&shared);
                complain_at = Instant::now();
            }
            if complain_at <= Instant::now() {
                complain(&shared, &shared.current());
                complain_at += COMPLAIN;
            }
        }
        std::thread::sleep(LOOK);
    }
}

fn read_again(shared: &Shared) {
    match shared.read_again() {
        Ok(current) => tracing::info!(
            certificate = %shared.files.certificate.display(),
            names = current.checked.names().join(", "),
            "certificate, key and CA were read again; new connections use them"
        ),
        Err(error) => tracing::warn!(
            %error,
            "certificate, key or CA have changed and can't be used; those read before stay in use"
        ),
    }
}

fn complain(shared: &Shared, current: &Current) {
    if let Some(at) = current.checked.expires_within(SOON) {
        tracing::warn!(
            certificate = %shared.files.certificate.display(),
            "the certificate expires on {}; replace it, and no connection can be made with it afterwards",
            utc(at)
        );
    }
}
