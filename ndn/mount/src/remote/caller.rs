//! Who made a call, and whether anybody waits for its answer yet.
//!
//! The kernel ends a program that waits for a page at once when it is killed, and tells nobody: what was asked for the page
//! is ours to answer, or to give up. For a call that a program makes itself (`O_DIRECT`, a symbolic link) it waits until that is
//! answered, however it was killed. So a call that waits looks after its caller.

use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// SIGKILL's place in a set of signals; the kernel makes it of each signal that ends a program.
const KILLED: u64 = 1 << (libc::SIGKILL - 1);
/// The kernel's flag of a thread that ends (`PF_EXITING`): it may yet wait for its files to be closed.
const EXITING: u64 = 4;

/// The thread that made a call.
#[derive(Debug, Clone, Copy)]
pub struct Caller(Option<Pid>);

impl Caller {
    /// The thread that the kernel numbers so; 0 is one that has no number here.
    pub fn new(number: u32) -> Self {
        Self(i32::try_from(number).ok().and_then(Pid::from_raw))
    }

    /// Whether it has ended, or does as soon as its call is answered. Of one that nothing can be learnt of, neither.
    ///
    /// Others may wait for the same page: to an answer that there is none, each of them asks for it himself.
    pub fn is_gone(self) -> bool {
        let Some(thread) = self.0 else {
            return false;
        };
        // What lies in `/proc` may be hidden from us, whether there is such a thread is not.
        if test_kill_process(thread) == Err(Errno::SRCH) {
            return true;
        }
        let stat = fs::read(format!("/proc/{}/stat", thread.as_raw_nonzero()));
        stat.is_ok_and(|stat| is_ending(&String::from_utf8_lossy(&stat)))
    }
}

/// Whether a thread of which `/proc/<n>/stat` tells this has ended, ends, or is killed (proc_pid_stat(5)).
fn is_ending(stat: &str) -> bool {
    // A program's name may have spaces and brackets in it.
    let Some((_, facts)) = stat.rsplit_once(") ") else {
        return false;
    };
    let facts: Vec<&str> = facts.split(' ').collect();
    // Fields are counted from 1, and this is the third.
    let field = |n: usize| facts.get(n - 3).copied().unwrap_or_default();
    let has = |n, bits| field(n).parse::<u64>().is_ok_and(|set| set & bits != 0);
    ["Z", "X"].contains(&field(3)) || has(9, EXITING) || has(31, KILLED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    #[test]
    fn who_has_ended_is_gone_before_anybody_looks_after_him() {
        let caller = |number| Caller::new(number);
        assert!(!caller(std::process::id()).is_gone());
        assert!(!caller(0).is_gone() && !caller(u32::MAX).is_gone());
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn();
        let child = child.as_mut().expect("a process");
        let number = child.id();
        assert!(!caller(number).is_gone());
        child.kill().expect("killed");
        let until = Instant::now() + Duration::from_secs(30);
        while !caller(number).is_gone() {
            assert!(Instant::now() < until);
            std::thread::sleep(Duration::from_millis(2));
        }
        child.wait().expect("a child");
        assert!(caller(number).is_gone());
    }

    #[test]
    fn a_thread_is_no_less_than_a_process() {
        let thread = std::thread::spawn(|| {
            let number = rustix::thread::gettid().as_raw_nonzero().get();
            let caller = Caller::new(number as u32);
            (caller, caller.is_gone())
        });
        let (caller, was_gone) = thread.join().expect("no panic");
        assert!(!was_gone);
        let until = Instant::now() + Duration::from_secs(30);
        while !caller.is_gone() {
            assert!(Instant::now() < until);
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn who_is_killed_or_ends_is_ending() {
        let stat = |state: &str, flags: u32, pending: u32| {
            is_ending(&format!(
                "7 (a ) Z b) {state} 1 7 7 0 -1 {flags} 98 0 0 0 0 0 0 0 20 0 1 0 5 2 1 3 1 1 0 0 0 {pending} 0 0 0\n"
            ))
        };
        assert!(!stat("S", 4_194_304, 0));
        assert!(stat("D", 4_194_304, 1 << 8));
        assert!(stat("D", 4_194_308, 0));
        assert!(stat("Z", 4_194_304, 0) && stat("X", 4_194_304, 0));
        // One that waits for its answer before it looks at SIGINT may go on with that.
        assert!(!stat("D", 4_194_304, 1 << 1));
        assert!(!is_ending("") && !is_ending("7 (cat) "));
    }
}
