//! The thread that waits for the disk, so that the one that answers Interests does not: it makes commands and insertions
//! durable in the order in which they were handed over.
//!
//! ```text
//!   serving thread ── jobs (bounded) ──▶ disk thread: all that wait are one group ──▶ results, and a wake-up
//! ```

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use ndn_packet::Name;
use redb::ReadableTable;

use crate::error::{At, RepoError, Result};
use crate::index::{COMMANDS, Kept, failed};
use crate::repo::Repo;
use crate::repo::packets::{Insertion, KeptInsertion};

/// Has whoever drives the server call [`super::Server::on_wake`] soon. Called from other threads.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// What ends on the disk.
pub(crate) enum Job {
    /// A command: a restart must not make it new, so it is remembered before anything comes of it.
    Command {
        id: u64,
        key: [u8; 32],
        /// When it was signed, in milliseconds since the Unix epoch.
        time_ms: u64,
        deletion: Option<Deletion>,
    },
    /// An insertion of which all is here.
    Commit { process: u64, insertion: Insertion },
}

/// What a command deletes: a packet, segments from the first to the last, or a version of a file.
#[derive(Debug, Clone)]
pub(crate) struct Deletion {
    pub name: Name,
    pub segments: Option<(u64, u64)>,
}

/// What became of a job.
pub(crate) enum Done {
    /// The command is remembered; so many packets or versions of files were deleted.
    Command { id: u64, deleted: Result<u64> },
    /// The insertion is on the disk, or failed.
    Commit { process: u64, result: Result<u64> },
    /// What had come before a restart was read: the insertion that goes on, and whether its last packet says that it is the
    /// last of all.
    Resumed {
        process: u64,
        result: Result<(Insertion, bool)>,
    },
}

/// Who hands results over.
#[derive(Clone)]
struct Results {
    done: Sender<Done>,
    wake: Waker,
}

impl Results {
    fn tell(&self, done: Done) {
        // Nobody listens any more where the server has ended.
        if self.done.send(done).is_ok() {
            (self.wake)();
        }
    }
}

/// The thread, as the server sees it. Dropped, it ends what was handed over and waits for that.
pub(crate) struct DiskThread {
    repo: Repo,
    jobs: Option<SyncSender<Job>>,
    done: Receiver<Done>,
    results: Results,
    thread: Option<JoinHandle<()>>,
}

impl DiskThread {
    /// Starts it. No more than `most` jobs wait.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(repo: &Repo, most: usize, wake: Waker) -> Result<Self> {
        let (jobs, waiting) = sync_channel(most);
        let (done, results) = channel();
        let tell = Results { done, wake };
        let (own, own_tell) = (repo.clone(), tell.clone());
        let thread = std::thread::Builder::new()
            .name(String::from("commit"))
            .spawn(move || run(&own, &waiting, most, &own_tell))
            .at("commands".as_ref())?;
        Ok(Self {
            repo: repo.clone(),
            jobs: Some(jobs),
            done: results,
            results: tell,
            thread: Some(thread),
        })
    }

    /// Hands a job over; false where too many wait, or the thread has ended.
    pub fn push(&self, job: Job) -> bool {
        let jobs = self.jobs.as_ref();
        jobs.is_some_and(|jobs| jobs.try_send(job).is_ok())
    }

    /// Has a thread of its own read what was kept of an insertion: that may take long, and nobody waits for it.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn resume(&self, process: u64, kept: KeptInsertion) -> std::io::Result<()> {
        let (repo, results) = (self.repo.clone(), self.results.clone());
        std::thread::Builder::new()
            .name(String::from("resume"))
            .spawn(move || {
                let result = kept.resume(&repo);
                // Whoever is told may be the last to need the repository.
                drop(repo);
                results.tell(Done::Resumed { process, result });
            })
            .map(drop)
    }

    /// What became of a job, if one is done.
    pub fn poll(&self) -> Option<Done> {
        self.done.try_recv().ok()
    }
}

impl Drop for DiskThread {
    fn drop(&mut self) {
        self.jobs = None;
        if self.thread.take().is_some_and(|t| t.join().is_err()) {
            tracing::error!("the thread that commits to the disk has panicked");
        }
    }
}

fn run(repo: &Repo, waiting: &Receiver<Job>, most: usize, results: &Results) {
    while let Ok(first) = waiting.recv() {
        let mut group = vec![first];
        group.extend(waiting.try_iter().take(most));
        let remembered = remember(repo, &group).map_err(Arc::new);
        let mut insertions = Vec::new();
        for job in group {
            match job {
                Job::Commit { process, insertion } => insertions.push((process, insertion)),
                Job::Command { id, deletion, .. } => {
                    let deleted = match (&remembered, deletion) {
                        (Err(error), _) => Err(RepoError::Shared(error.clone())),
                        (Ok(()), None) => Ok(0),
                        (Ok(()), Some(deletion)) => {
                            // It may delete what they insert.
                            commit(&mut insertions, results);
                            delete(repo, &deletion)
                        }
                    };
                    results.tell(Done::Command { id, deleted });
                }
            }
        }
        commit(&mut insertions, results);
    }
}

fn commit(waiting: &mut Vec<(u64, Insertion)>, results: &Results) {
    let (processes, insertions): (Vec<u64>, Vec<Insertion>) = waiting.drain(..).unzip();
    let committed = Insertion::commit_all(insertions);
    for (process, result) in processes.into_iter().zip(committed) {
        results.tell(Done::Commit { process, result });
    }
}

/// Makes durable until when commands of which key were taken.
fn remember(repo: &Repo, group: &[Job]) -> Result<()> {
    let commands: Vec<(&[u8; 32], u64)> = group
        .iter()
        .filter_map(|job| match job {
            Job::Command { key, time_ms, .. } => Some((key, *time_ms)),
            Job::Commit { .. } => None,
        })
        .collect();
    if commands.is_empty() {
        return Ok(());
    }
    repo.inner.index.change(Kept::Durably, |tx| {
        let mut table = tx.open_table(COMMANDS).map_err(failed)?;
        for (key, time_ms) in commands {
            let before = table.get(&key[..]).map_err(failed)?.map(|t| t.value());
            if before.is_none_or(|before| before < time_ms) {
                table.insert(&key[..], time_ms).map_err(failed)?;
            }
        }
        Ok(())
    })
}

fn delete(repo: &Repo, deletion: &Deletion) -> Result<u64> {
    let Deletion { name, segments } = deletion;
    let version = name.last().and_then(|c| c.as_version());
    // A version of a file goes as a whole.
    if let Some(version) = version
        && segments.is_none_or(|s| s == (0, u64::MAX))
    {
        let files = repo.remove(&[(name.parent(), version)])?;
        if files > 0 {
            return Ok(files);
        }
    }
    repo.remove_packets(name, *segments)
}
