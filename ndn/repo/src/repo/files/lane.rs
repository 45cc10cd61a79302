//! The way of a file's bytes through the hasher. Small files are hashed where they are; from the second block on threads
//! hash, a block each, while the next is copied. Where the file's room is reserved they write it, too: then whoever copies
//! waits for no device. What they find goes to the manifest in the order of the file, and so only when it is written.
//!
//! ```text
//!   feed ──▶ block 0 ──▶ thread 0 ──▶ entries ──▶ Hasher::enter ──▶ manifest
//!            block 1 ──▶ thread 1 ──▶ entries ──▶      │
//!            block 2 ──▶ thread 0 …                    └─ in order: 0, 1, 2 …
//! ```

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::block::Block;
use super::hasher::{Hashed, Hasher};
use super::manifest::SegmentEntry;
use super::segments::Shape;
use crate::disk::DiskFile;

/// Most threads for a file: more would wait for whoever copies. As many are there for those that write, which wait for the
/// device.
const MOST_THREADS: usize = 4;
/// Blocks that a thread has in hand or waiting.
const BLOCKS_EACH: usize = 2;

/// A content file, and where in it something goes.
type Sink = (Arc<dyn DiskFile>, u64);

/// A file's hasher, and the threads that help it.
pub(crate) struct Lane {
    hasher: Hasher,
    /// What is to be written, and where the next block goes.
    sink: Option<Sink>,
    /// Whether bytes came before: then it is worth threads.
    goes_on: bool,
    pool: Option<Pool>,
}

struct Pool {
    threads: Vec<Thread>,
    /// Which thread has what is not entered yet, the oldest first.
    waiting: VecDeque<usize>,
    next: usize,
}

struct Thread {
    jobs: Sender<Job>,
    done: Receiver<Done>,
}

/// Whole segments, none of them the file's last.
struct Job {
    first: u64,
    /// The segment before the block's own; it began in an earlier block. Or nothing.
    carried: Vec<u8>,
    block: Block,
    whole: Range<usize>,
    /// Where the block is to be written.
    to: Option<Sink>,
}

struct Done {
    entries: io::Result<Vec<SegmentEntry>>,
    block: Block,
}

impl Lane {
    /// For a hasher that has seen some segments or none.
    pub fn new(hasher: Hasher) -> Self {
        Self {
            hasher,
            sink: None,
            goes_on: false,
            pool: None,
        }
    }

    /// As [`Lane::new`], of a file that was not written before and is written here, from its start on.
    pub fn writing(hasher: Hasher, content: Arc<dyn DiskFile>) -> Self {
        Self {
            sink: Some((content, 0)),
            ..Self::new(hasher)
        }
    }

    /// From here on blocks are written here, the next at `at`: see [`Lane::writing`]. What was fed before is entered. Tells
    /// false, and goes on as before, where no threads can be had for it.
    pub fn write_from(&mut self, content: Arc<dyn DiskFile>, at: u64) -> io::Result<bool> {
        // Those that write are more.
        let Some(pool) = self.start_pool(true) else {
            return Ok(false);
        };
        self.enter_all()?;
        (self.pool, self.sink) = (Some(pool), Some((content, at)));
        Ok(true)
    }

    /// Nothing where the system gives no threads.
    fn start_pool(&self, writes: bool) -> Option<Pool> {
        let started = Pool::start(self.hasher.shape(), writes);
        if let Err(error) = &started {
            tracing::debug!(%error, "no threads to hash with");
        }
        started.ok()
    }

    /// From here on blocks are not written here; all that was fed to be written must be entered.
    pub fn write_no_more(&mut self) {
        if self.sink.take().is_some() {
            self.pool = None;
        }
    }

    /// Whether blocks are written here.
    pub fn writes(&self) -> bool {
        self.sink.is_some()
    }

    /// Takes the file's next bytes; gives an empty block to fill next. An error may be of a block before.
    pub fn feed(&mut self, block: Block) -> io::Result<Block> {
        let to = self.sink.clone();
        if let Some((_, at)) = &mut self.sink {
            *at += block.len() as u64;
        }
        if !std::mem::replace(&mut self.goes_on, true) {
            return self.feed_here(to.as_ref(), block);
        }
        if self.pool.is_none() {
            self.pool = self.start_pool(to.is_some());
        }
        let Some(pool) = &mut self.pool else {
            return self.feed_here(to.as_ref(), block);
        };
        let mut used = Block::default();
        if pool.waiting.len() == pool.threads.len() * BLOCKS_EACH {
            used = pool.enter_oldest(&mut self.hasher)?;
        }
        let (first, carried, whole) = self.hasher.cut(block.bytes());
        if carried.is_empty() && whole.is_empty() {
            write(to.as_ref(), &block)?;
            return Ok(used);
        }
        let thread = pool.next;
        pool.next = (thread + 1) % pool.threads.len();
        let job = Job {
            first,
            carried,
            block,
            whole,
            to,
        };
        pool.threads[thread].jobs.send(job).map_err(|_| ended())?;
        pool.waiting.push_back(thread);
        Ok(used)
    }

    /// Without threads; none may have anything in hand.
    fn feed_here(&mut self, to: Option<&Sink>, mut block: Block) -> io::Result<Block> {
        write(to, &block)?;
        self.hasher.feed(block.bytes())?;
        block.clear();
        Ok(block)
    }

    /// What was fed was all.
    pub fn finish(mut self) -> io::Result<Hashed> {
        self.enter_all()?;
        self.hasher.finish()
    }

    /// Writes down what is known of whole segments, so that the work can go on from there.
    pub fn suspend(mut self) -> io::Result<()> {
        self.enter_all()?;
        self.hasher.suspend()
    }

    /// Waits until all that was fed is written and entered.
    pub fn enter_all(&mut self) -> io::Result<()> {
        while let Some(pool) = self.pool.as_mut().filter(|pool| !pool.waiting.is_empty()) {
            pool.enter_oldest(&mut self.hasher)?;
        }
        Ok(())
    }
}

impl Pool {
    fn start(shape: &Shape, writes: bool) -> io::Result<Self> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let count = match writes {
            true => MOST_THREADS,
            false => processors.min(MOST_THREADS),
        };
        let shape = Arc::new(shape.clone());
        let threads = (0..count)
            .map(|_| Thread::start(shape.clone()))
            .collect::<io::Result<_>>()?;
        Ok(Self {
            threads,
            waiting: VecDeque::new(),
            next: 0,
        })
    }

    /// Waits for the oldest block and enters what was found; gives the block back, empty.
    fn enter_oldest(&mut self, hasher: &mut Hasher) -> io::Result<Block> {
        let Some(thread) = self.waiting.pop_front() else {
            return Ok(Block::default());
        };
        let Done { entries, mut block } = self.threads[thread].done.recv().map_err(|_| ended())?;
        for entry in &entries? {
            hasher.enter(entry)?;
        }
        block.clear();
        Ok(block)
    }
}

impl Thread {
    fn start(shape: Arc<Shape>) -> io::Result<Self> {
        let (jobs, waiting) = channel();
        let (found, done) = channel();
        std::thread::Builder::new()
            .name(String::from("hasher"))
            .spawn(move || work(&shape, &waiting, &found))?;
        Ok(Self { jobs, done })
    }
}

/// Ends when the lane does.
fn work(shape: &Shape, jobs: &Receiver<Job>, found: &Sender<Done>) {
    while let Ok(job) = jobs.recv() {
        let own = job.block.bytes()[job.whole.clone()].chunks(shape.segment_bytes as usize);
        let carried = Some(&job.carried[..]).filter(|c| !c.is_empty());
        let hash = || {
            (job.first..)
                .zip(carried.into_iter().chain(own))
                .map(|(segment, content)| {
                    SegmentEntry::new(shape.digest(segment, false, content), content)
                })
                .collect()
        };
        let done = Done {
            entries: write(job.to.as_ref(), &job.block).map(|()| hash()),
            block: job.block,
        };
        if found.send(done).is_err() {
            return;
        }
    }
}

fn write(to: Option<&Sink>, block: &Block) -> io::Result<()> {
    match to {
        Some((content, at)) => content.write_at(*at, block.bytes()),
        None => Ok(()),
    }
}

fn ended() -> io::Error {
    io::Error::other("a hashing thread ended early")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::disk::{Disk, RealDisk};

    fn hasher(disk: &RealDisk, path: &str, segment_bytes: u32) -> Hasher {
        let shape = Shape {
            versioned: "/a/v=1".parse().expect("a name"),
            segment_bytes,
            freshness: Duration::from_secs(1),
            final_in_all: None,
        };
        let file = disk.create(path.as_ref()).expect("a file");
        Hasher::new(shape, file, 0)
    }

    fn block(bytes: &[u8]) -> Block {
        let mut block = Block::default();
        assert_eq!(block.take(bytes), bytes.len());
        block
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn threads_find_what_one_pass_finds(
            cuts in prop::collection::vec(0_usize..40, 0..40),
            segment_bytes in 1_u32..20,
            suspended: bool,
            writes_from in prop::option::of(0_usize..40),
            writes_until in 0_usize..60,
        ) {
            let folder = tempfile::tempdir().expect("a folder");
            let disk = RealDisk::open(folder.path()).expect("a disk");
            let content: Vec<u8> = (0..cuts.iter().sum()).map(|n| n as u8).collect();
            let mut one = hasher(&disk, "one", segment_bytes);
            one.feed(&content).expect("hashed");
            let written = disk.create("written".as_ref()).expect("a file");
            let hashed = hasher(&disk, "lane", segment_bytes);
            let mut lane = match writes_from {
                Some(0) => Lane::writing(hashed, written.clone()),
                _ => Lane::new(hashed),
            };
            let (mut at, mut seen) = (0, Vec::new());
            for (i, n) in cuts.iter().enumerate() {
                if writes_from == Some(i) && i > 0 {
                    assert!(lane.write_from(written.clone(), at as u64).expect("hashed"));
                } else if writes_until == i {
                    lane.enter_all().expect("written");
                    lane.write_no_more();
                }
                seen.resize(at + n, 0);
                if lane.writes() {
                    seen[at..].copy_from_slice(&content[at..at + n]);
                }
                let used = lane.feed(block(&content[at..at + n])).expect("hashed");
                prop_assert!(used.is_empty());
                at += n;
            }
            if suspended {
                one.suspend().expect("written");
                lane.suspend().expect("written");
            } else {
                let (one, lane) = (one.finish().expect("written"), lane.finish().expect("written"));
                prop_assert_eq!((one.at, one.root), (lane.at, lane.root));
            }
            let read = |path| std::fs::read(folder.path().join(path)).expect("read");
            prop_assert_eq!(read("one"), read("lane"));
            let mut found = read("written");
            prop_assert!(found.len() <= seen.len());
            found.resize(seen.len(), 0);
            prop_assert_eq!(found, seen);
        }
    }
}
