//! What the NameNode is asked, on a thread of its own.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use ndn_packet::{Component, Name};
use ndn_repo::protocol::Waker;
use ndn_repo::{Listing, MAX_LISTING_BYTES, list_component, now_us};

use crate::cut::Cut;
use crate::file::{Draft, File, Unserved};
use crate::namenode::{NameNode, StoreError, Trouble};
use crate::webhdfs::Status;

/// Questions that wait; further ones are refused.
const MAX_OPEN: usize = 256;
/// After so long nobody waits for an answer any more.
const STALE: Duration = Duration::from_secs(4);
/// Blocks asked for at once.
const PAGE_BLOCKS: u64 = 256;
/// How often a file that changes while it is asked about is asked about again.
const TRIES: u32 = 3;

/// What is to be known about a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Topic {
    /// The newest version of the file of this name.
    File(Name),
    /// What is in the folder of this name.
    Folder(Name),
}

/// What the NameNode knows of a topic.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    File(Lookup<File>),
    Folder(Lookup<Listing>),
}

/// What is there; `None` where there is nothing that the user may see.
pub(crate) type Lookup<T> = Result<Option<Arc<T>>, Unserved>;

#[derive(Debug)]
pub(crate) struct Question {
    topic: Topic,
    path: String,
    asked: Instant,
}

/// Why a question has no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// No NameNode answers anything.
    Silent(StoreError),
    /// It was not put in time: more is asked than the NameNode answers.
    Late,
    /// Nobody puts questions any more.
    Ended,
}

/// An answer on its way back.
pub(crate) type Told = (Topic, Result<Answer, Unanswered>);

/// Questions on their way to the NameNode, and its answers on their way back. Each topic is asked about once at a time.
pub struct Questions {
    to_thread: Sender<Question>,
    told: Receiver<Told>,
    open: HashSet<Topic>,
}

impl Questions {
    /// Starts the thread; it ends when this is dropped. It calls `wake` when it has an answer, or ends.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn to(mut namenode: NameNode, cut: Cut, wake: Waker) -> io::Result<Self> {
        let (to_thread, questions) = channel::<Question>();
        // An answer may be large: one is waited with until the one before is taken.
        let (tell, told) = sync_channel(1);
        std::thread::Builder::new()
            .name(String::from("namenode"))
            .spawn(move || {
                let answers = Answers {
                    tell: Some(tell),
                    wake,
                };
                while let Ok(question) = questions.recv() {
                    let answer = match question.asked.elapsed() > STALE {
                        true => Err(Unanswered::Late),
                        false => answer(&mut namenode, &question, &cut),
                    };
                    if !answers.give((question.topic, answer)) {
                        return;
                    }
                }
            })?;
        Ok(Self {
            to_thread,
            told,
            open: HashSet::new(),
        })
    }

    /// Questions that a test answers.
    #[cfg(test)]
    pub(crate) fn to_test() -> (Self, Receiver<Question>, std::sync::mpsc::SyncSender<Told>) {
        let (to_thread, questions) = channel();
        let (tell, told) = sync_channel(1);
        let open = HashSet::new();
        let these = Self {
            to_thread,
            told,
            open,
        };
        (these, questions, tell)
    }

    /// Asks, unless it is asked already; false where too much is.
    pub(crate) fn ask(&mut self, topic: &Topic, path: impl FnOnce() -> Option<String>) -> bool {
        if self.open.contains(topic) {
            return true;
        }
        if self.open.len() >= MAX_OPEN {
            return false;
        }
        let Some(path) = path() else {
            return false;
        };
        let question = Question {
            topic: topic.clone(),
            path,
            asked: Instant::now(),
        };
        let is_sent = self.to_thread.send(question).is_ok();
        if is_sent {
            self.open.insert(topic.clone());
        }
        is_sent
    }

    /// An answer that has come, or that never will.
    pub(crate) fn poll(&mut self) -> Option<Told> {
        let told = match self.told.try_recv() {
            Ok(told) => told,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => {
                let topic = self.open.iter().next()?.clone();
                (topic, Err(Unanswered::Ended))
            }
        };
        self.open.remove(&told.0);
        Some(told)
    }
}

/// Where the thread's answers go. Whoever waits for them is woken when there will be none, too.
struct Answers {
    tell: Option<SyncSender<Told>>,
    wake: Waker,
}

impl Answers {
    /// Hands an answer over; false where nobody takes it any more.
    fn give(&self, told: Told) -> bool {
        let is_taken = self.tell.as_ref().is_some_and(|to| to.send(told).is_ok());
        (self.wake)();
        is_taken
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.tell = None;
        (self.wake)();
    }
}

fn answer(namenode: &mut NameNode, question: &Question, cut: &Cut) -> Result<Answer, Unanswered> {
    let path = &question.path;
    namenode.begin();
    Ok(match &question.topic {
        Topic::File(name) => Answer::File(found("file", path, file(namenode, name, path, cut))?),
        Topic::Folder(name) => {
            Answer::Folder(found("folder", path, folder(namenode, name, path).map(Ok))?)
        }
    })
}

/// What was found at `path`, where a `kind` was asked for. Trouble with one path is no trouble with the NameNode.
fn found<T>(
    kind: &str,
    path: &str,
    told: Result<Result<Option<T>, Unserved>, Trouble>,
) -> Result<Lookup<T>, Unanswered> {
    let found = match told {
        Err(Trouble::Path(why)) => Err(Unserved::Untold(why)),
        Err(Trouble::Silent(error)) => return Err(Unanswered::Silent(error)),
        Ok(found) => found,
    };
    Ok(found
        .map(|found| found.map(Arc::new))
        .inspect_err(|why| tracing::warn!(path, %why, "{kind} not published")))
}

/// The newest version of a file. What is told of it comes in several answers, which must be of the same version.
fn file(
    namenode: &mut NameNode,
    name: &Name,
    path: &str,
    cut: &Cut,
) -> Result<Result<Option<File>, Unserved>, Trouble> {
    let Some(mut status) = namenode.status(path)? else {
        return Ok(Ok(None));
    };
    for _ in 0..TRIES {
        if status.kind != "FILE" {
            return Ok(Ok(None));
        }
        if let Err(why) = File::refuse(&status) {
            return Ok(Err(why));
        }
        let drawn = draft(namenode, path, &status)?;
        match namenode.status(path)? {
            Some(after) if after == status => {
                let file = drawn.and_then(|draft| {
                    draft
                        .map(|draft| draft.finish(name, &status, cut))
                        .transpose()
                });
                return Ok(file);
            }
            Some(after) => status = after,
            None => return Ok(Ok(None)),
        }
    }
    Ok(Err(Unserved::Open))
}

/// All blocks of a file.
fn draft(
    namenode: &mut NameNode,
    path: &str,
    status: &Status,
) -> Result<Result<Option<Draft>, Unserved>, Trouble> {
    let mut draft = Draft::new();
    let page = status.block_size.max(1).saturating_mul(PAGE_BLOCKS);
    loop {
        let before = draft.end;
        let Some(blocks) = namenode.blocks(path, before, page)? else {
            return Ok(Ok(None));
        };
        if blocks.is_under_construction {
            return Ok(Err(Unserved::Open));
        }
        if let Err(why) = draft.extend(&blocks.located_blocks) {
            return Ok(Err(why));
        }
        // What lacks is found when it is compared with the file's length.
        if draft.end >= status.length || draft.end == before {
            return Ok(Ok(Some(draft)));
        }
    }
}

/// What is in a folder; `None` where there is none, or too much in it to be told.
fn folder(namenode: &mut NameNode, folder: &Name, path: &str) -> Result<Option<Listing>, Trouble> {
    let mut content = BytesMut::new();
    let mut after = String::new();
    loop {
        let Some(listing) = namenode.list(path, &after)? else {
            return Ok(None);
        };
        let found = listing.partial_listing.statuses.all;
        if !list(&mut content, &found) {
            return Ok(None);
        }
        if content.len() > MAX_LISTING_BYTES {
            tracing::warn!(path, "folder has too many entries for a listing");
            return Ok(None);
        }
        match found.into_iter().next_back() {
            Some(last) if listing.remaining_entries > 0 => after = last.path_suffix,
            _ => break,
        }
    }
    let versioned = folder.append_keyword("ls").append_version(now_us());
    // What has grown bit by bit has room to spare.
    let content = Bytes::copy_from_slice(&content);
    Ok(Some(Listing::new(versioned, content)))
}

/// Adds what was found to a folder's listing; false where that is no folder's.
pub(crate) fn list(content: &mut BytesMut, found: &[Status]) -> bool {
    // A file's listing is itself, without a name.
    if found.iter().any(|status| status.path_suffix.is_empty()) {
        return false;
    }
    for status in found {
        let component = Component::generic(status.path_suffix.as_bytes());
        list_component(content, component, status.kind == "DIRECTORY");
    }
    true
}
