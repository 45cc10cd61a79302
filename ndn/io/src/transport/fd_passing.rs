//! Descriptors that a peer passed over a Unix socket, and getting rid of them without waiting.
//!
//! Closing may take as long as whoever made the descriptor likes: a TCP socket lingers over
//! unsent bytes, a file system in user space may never answer. The loop must not wait for
//! that, and the kernel closes in the reader's name what comes beside bytes that are read
//! without room for it. So there is always room, and all of them are closed elsewhere.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use socket2::{SockRef, Socket};

/// Descriptors that one message can bring (the kernel's SCM_MAX_FD).
const MOST_AT_ONCE: usize = 253;
/// Threads that close: one that never comes back from it holds up none of the others.
const CLOSERS: usize = 4;

/// Descriptors that a peer has to pass: its rings, and the memory of its packets.
pub(crate) const WANTED: usize = 2;

/// A descriptor that a peer passed.
pub(crate) struct Passed(Option<OwnedFd>);

impl From<OwnedFd> for Passed {
    fn from(descriptor: OwnedFd) -> Self {
        Passed(Some(descriptor))
    }
}

impl AsFd for Passed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_ref().expect("there until it is dropped").as_fd()
    }
}

impl Drop for Passed {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(close);
    }
}

/// Those of one peer, in their order.
#[derive(Default)]
pub(crate) struct AllPassed {
    untaken: VecDeque<Passed>,
    came: usize,
}

impl AllPassed {
    /// The next one.
    pub fn take(&mut self) -> Option<Passed> {
        self.untaken.pop_front()
    }

    fn add(&mut self, descriptor: Passed) {
        self.came += 1;
        if self.came <= WANTED {
            self.untaken.push_back(descriptor);
        }
    }
}

/// Reads from a Unix socket without waiting, and the descriptors that came beside the bytes. Returns the bytes read, and whether descriptors came: the kernel ends a read
/// behind them, so that a short one does not mean an empty socket.
///
/// # Errors
/// As reading; [`io::ErrorKind::WouldBlock`] where nothing is there. More than [`WANTED`] have
/// come: whoever passes them without end would have all that there can be.
pub(crate) fn read(
    socket: &Socket,
    buf: &mut [u8],
    passed: &mut AllPassed,
) -> io::Result<(usize, bool)> {
    let (read, came) = receive(socket, buf, |descriptor| passed.add(descriptor))?;
    if passed.came > WANTED {
        let what = "the peer passes more descriptors than anybody asked for";
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    Ok((read, came))
}

fn receive(
    socket: &Socket,
    buf: &mut [u8],
    mut keep: impl FnMut(Passed),
) -> io::Result<(usize, bool)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_AT_ONCE))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let message = rustix::net::recvmsg(
        socket,
        &mut [IoSliceMut::new(buf)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
    )?;
    let mut came = false;
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = part {
            for descriptor in descriptors {
                came = true;
                keep(descriptor.into());
            }
        }
    }
    Ok((message.bytes, came))
}

/// Closes a descriptor of unknown make without waiting for that.
fn close(descriptor: OwnedFd) {
    // No socket: no matter. What still waits does so on a thread of its own.
    let _ = SockRef::from(&descriptor.as_fd()).set_linger(None);
    // Those that wait are bounded by the descriptors that a process may have.
    let sent = match closers() {
        Some(closers) => closers.send(descriptor).map_err(|unsent| unsent.0),
        None => Err(descriptor),
    };
    if let Err(descriptor) = sent {
        // A descriptor lost is better than a loop that stands still.
        let _ = descriptor.into_raw_fd();
    }
}

fn closers() -> Option<&'static Sender<OwnedFd>> {
    static SENDER: OnceLock<Option<Sender<OwnedFd>>> = OnceLock::new();
    SENDER
        .get_or_init(|| {
            let (sender, waiting) = channel();
            let waiting = Arc::new(Mutex::new(waiting));
            let started = (0..CLOSERS).filter(|_| {
                let waiting = waiting.clone();
                std::thread::Builder::new()
                    .name("ndn-closer".to_owned())
                    .spawn(move || while close_next(&waiting) {})
                    .is_ok()
            });
            (started.count() > 0).then_some(sender)
        })
        .as_ref()
}

/// Waits for a descriptor and closes it; false where none will come any more.
fn close_next(waiting: &Mutex<Receiver<OwnedFd>>) -> bool {
    let next = {
        let waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.recv()
    };
    // Closed here, without the lock.
    next.is_ok()
}

/// Before a Unix socket is closed: takes out what a peer may have left in it.
pub(crate) fn empty(socket: &Socket) {
    // From here on the peer can add nothing.
    let _ = socket.shutdown(std::net::Shutdown::Both);
    let mut rest = [0; 4096];
    loop {
        match receive(socket, &mut rest, drop) {
            Ok((n, _)) if n > 0 => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}
