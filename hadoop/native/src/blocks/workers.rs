//! The threads that read blocks and digest segments, so that the loop does not.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Something for a worker to do.
pub type Job = Box<dyn FnOnce() + Send>;

/// A bounded queue and the threads that empty it.
pub struct Workers {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    queue: Mutex<Queue>,
    filled: Condvar,
    bound: usize,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl Workers {
    /// Starts `threads` threads that share a queue of at most `bound` jobs.
    pub fn start(name: &str, threads: usize, bound: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            filled: Condvar::new(),
            bound,
        });
        let mut handles = Vec::with_capacity(threads);
        for n in 0..threads {
            let shared = shared.clone();
            let thread = std::thread::Builder::new().name(format!("{name}-{n}"));
            handles.push(thread.spawn(move || shared.work())?);
        }
        Ok(Workers {
            shared,
            threads: Mutex::new(handles),
        })
    }

    /// Queues a job; gives it back when the queue is full or closed.
    pub fn submit(&self, job: Job) -> Result<(), Job> {
        let mut queue = self
            .shared
            .queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if queue.closed || queue.jobs.len() >= self.shared.bound {
            return Err(job);
        }
        queue.jobs.push_back(job);
        drop(queue);
        self.shared.filled.notify_one();
        Ok(())
    }

    /// Drops what is queued and waits for what is being done.
    pub fn stop(&self) {
        {
            let mut queue = self
                .shared
                .queue
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            queue.closed = true;
            queue.jobs.clear();
        }
        self.shared.filled.notify_all();
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a block reader ended in a panic");
            }
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn work(&self) {
        loop {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            let job = loop {
                if queue.closed {
                    return;
                }
                if let Some(job) = queue.jobs.pop_front() {
                    break job;
                }
                queue = self
                    .filled
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner);
            };
            drop(queue);
            job();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn jobs_are_done_and_the_bound_is_kept() {
        let workers = Workers::start("test", 1, 2).unwrap();
        let (hold, held) = mpsc::channel::<()>();
        let (started, starts) = mpsc::channel();
        let (done, dones) = mpsc::channel();
        let submit = workers.submit(Box::new(move || {
            started.send(()).unwrap();
            held.recv().unwrap();
        }));
        assert!(submit.is_ok());
        starts.recv().unwrap();
        for n in 0..2 {
            let done = done.clone();
            assert!(
                workers
                    .submit(Box::new(move || done.send(n).unwrap()))
                    .is_ok()
            );
        }
        assert!(
            workers.submit(Box::new(|| {})).is_err(),
            "a third waits beyond the bound"
        );
        hold.send(()).unwrap();
        assert_eq!((dones.recv(), dones.recv()), (Ok(0), Ok(1)));
        workers.stop();
        assert!(workers.submit(Box::new(|| {})).is_err());
    }
}
