//! Descriptors that a peer passed over a Unix socket, and getting rid of them without waiting.
//!
//! Closing may take as long as whoever made the descriptor likes: a TCP socket lingers over
//! unsent bytes, a file system in user space may never answer. The loop must not wait for
//! that, and the kernel closes in the reader's name what comes beside bytes that are read
//! without room for it. So there is always room, and what is not wanted is closed elsewhere.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use socket2::{SockRef, Socket};

/// Descriptors that one message can bring (the kernel's SCM_MAX_FD).
const MOST_AT_ONCE: usize = 253;
/// Descriptors that may wait to be closed.
const MAX_WAITING: usize = 1024;

/// Descriptors of one peer that are kept: its rings, and the memory of its packets.
pub(crate) const WANTED: usize = 2;

/// Reads from a Unix socket without waiting; descriptors that came beside the bytes are put
/// into `wanted` until [`WANTED`] are there, all others are got rid of. Returns the bytes read,
/// and whether descriptors came: the kernel ends a read behind them, so that a short one does
/// not mean an empty socket.
///
/// # Errors
/// As reading; [`io::ErrorKind::WouldBlock`] where nothing is there.
pub(crate) fn read(
    socket: &Socket,
    buf: &mut [u8],
    mut wanted: Option<&mut Vec<OwnedFd>>,
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
                match &mut wanted {
                    Some(kept) if kept.len() < WANTED => kept.push(descriptor),
                    _ => close(descriptor),
                }
            }
        }
    }
    Ok((message.bytes, came))
}

/// Closes a descriptor of unknown make without waiting for that.
pub(crate) fn close(descriptor: OwnedFd) {
    // No socket: no matter. What still waits does so on a thread of its own.
    let _ = SockRef::from(&descriptor.as_fd()).set_linger(None);
    let sent = match closer() {
        Some(closer) => closer
            .try_send(descriptor)
            .map_err(|refused| match refused {
                std::sync::mpsc::TrySendError::Full(fd)
                | std::sync::mpsc::TrySendError::Disconnected(fd) => fd,
            }),
        None => Err(descriptor),
    };
    if let Err(descriptor) = sent {
        // A descriptor lost is better than a loop that stands still.
        let _ = descriptor.into_raw_fd();
    }
}

fn closer() -> Option<&'static SyncSender<OwnedFd>> {
    static CLOSER: OnceLock<Option<SyncSender<OwnedFd>>> = OnceLock::new();
    CLOSER
        .get_or_init(|| {
            let (sender, waiting): (_, Receiver<OwnedFd>) = sync_channel(MAX_WAITING);
            std::thread::Builder::new()
                .name("ndn-closer".to_owned())
                .spawn(move || waiting.into_iter().for_each(drop))
                .map(|_| sender)
                .ok()
        })
        .as_ref()
}

/// Before a Unix socket is closed: takes out what a peer may have left in it.
pub(crate) fn empty(socket: &Socket) {
    // From here on the peer can add nothing.
    let _ = socket.shutdown(std::net::Shutdown::Both);
    let mut rest = [0; 4096];
    loop {
        match read(socket, &mut rest, None) {
            Ok((n, _)) if n > 0 => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}
