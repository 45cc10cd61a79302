//! A thread that writes what a transfer brings, so that a slow disk or pipe does not hold up the
//! network. It may fall a bounded number of batches behind; then the transfer stops asking.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;

use super::sink::Output;

/// Bytes that are handed over at once where they come fast.
const BATCH_BYTES: usize = 256 * 1024;
/// Batches that may wait for the disk.
const WAITING_BATCHES: usize = 16;
/// How long a smaller batch may be kept back.
const LINGER: Duration = Duration::from_millis(50);

/// The transfer's end of the writing thread.
pub struct Writer {
    batches: Option<SyncSender<Vec<Bytes>>>,
    thread: Option<JoinHandle<io::Result<()>>>,
    batch: Vec<Bytes>,
    batch_bytes: usize,
    since: Duration,
    stopped: bool,
}

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn start(output: Output) -> io::Result<Self> {
        let (batches, waiting) = sync_channel(WAITING_BATCHES);
        let thread = std::thread::Builder::new()
            .name(String::from("writer"))
            .spawn(move || write(output, &waiting))?;
        Ok(Writer {
            batches: Some(batches),
            thread: Some(thread),
            batch: Vec::new(),
            batch_bytes: 0,
            since: Duration::ZERO,
            stopped: false,
        })
    }

    /// Whether another part may be given now.
    pub fn has_room(&self) -> bool {
        self.batch_bytes < BATCH_BYTES
    }

    /// Takes a part. One that comes without room is kept all the same.
    pub fn push(&mut self, now: Duration, part: Bytes) {
        if self.batch.is_empty() {
            self.since = now;
        }
        self.batch_bytes += part.len();
        self.batch.push(part);
        if self.batch_bytes >= BATCH_BYTES {
            self.try_flush();
        }
    }

    /// When [`Writer::on_deadline`] is to be called: soon, while a batch waits.
    pub fn deadline(&self) -> Option<Duration> {
        if self.batch.is_empty() || self.stopped {
            None
        } else if self.has_room() {
            Some(self.since + LINGER)
        } else {
            Some(self.since + Duration::from_millis(1))
        }
    }

    /// Hands over what waits, if the thread can take it.
    pub fn on_deadline(&mut self, now: Duration) {
        if !self.batch.is_empty()
            && self.deadline().is_some_and(|at| at <= now)
            && !self.try_flush()
        {
            self.since = now;
        }
    }

    /// Whether the thread has ended early because it can't write; [`Writer::finish`] tells why.
    pub fn has_stopped(&self) -> bool {
        self.stopped || self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }

    fn try_flush(&mut self) -> bool {
        let Some(batches) = &self.batches else {
            return true;
        };
        match batches.try_send(std::mem::take(&mut self.batch)) {
            Ok(()) => {
                self.batch_bytes = 0;
                true
            }
            Err(TrySendError::Full(batch)) => {
                self.batch = batch;
                false
            }
            Err(TrySendError::Disconnected(_)) => {
                self.batch_bytes = 0;
                self.stopped = true;
                true
            }
        }
    }

    /// Waits until all is written.
    ///
    /// # Errors
    /// Why something could not be written.
    pub fn finish(mut self) -> io::Result<()> {
        if let Some(batches) = self.batches.take() {
            // Fails only where the thread has ended, and then its own error is told below.
            let _ = batches.send(std::mem::take(&mut self.batch));
        }
        match self.thread.take() {
            Some(thread) => thread
                .join()
                .map_err(|_| io::Error::other("the writing thread panicked"))?,
            None => Ok(()),
        }
    }
}

fn write(mut output: Output, batches: &Receiver<Vec<Bytes>>) -> io::Result<()> {
    while let Ok(batch) = batches.recv() {
        output.write_all(&batch)?;
    }
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::super::sink::Sink;
    use super::*;
    use std::path::Path;

    fn writer(path: &str) -> Writer {
        let sink = Sink::open(Path::new(path)).expect("a sink");
        Writer::start(sink.output).expect("a thread")
    }

    #[test]
    fn writes_in_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        let sink = Sink::open(&path).expect("a sink");
        let mut writer = Writer::start(sink.output).expect("a thread");
        let mut expected = Vec::new();
        for i in 0..200u8 {
            let part = vec![i; 5000];
            expected.extend_from_slice(&part);
            while !writer.has_room() {
                std::thread::sleep(Duration::from_millis(1));
                writer.on_deadline(Duration::MAX);
            }
            writer.push(Duration::ZERO, part.into());
        }
        writer
            .finish()
            .and_then(|()| sink.end.reach())
            .expect("written");
        assert!(std::fs::read(&path).expect("the file") == expected);
    }

    #[test]
    fn small_batches_go_after_a_while() {
        let mut writer = writer("/dev/null");
        assert_eq!(writer.deadline(), None);
        writer.push(Duration::from_secs(1), Bytes::from_static(b"x"));
        assert_eq!(writer.deadline(), Some(Duration::from_secs(1) + LINGER));
        writer.on_deadline(Duration::from_secs(2));
        assert_eq!(writer.deadline(), None);
    }

    #[test]
    fn tells_why_it_could_not_write() {
        let mut writer = writer("/dev/full");
        writer.push(Duration::ZERO, Bytes::from_static(b"x"));
        let Err(error) = writer.finish() else {
            panic!("written to a full device")
        };
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
