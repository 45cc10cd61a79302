//! What the kernel says of interfaces as they change (RTNLGRP_LINK of rtnetlink(7)). It only says when to look: messages may
//! get lost, and the bridge is looked at every now and then anyhow.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

use crate::netlink::{attribute, i32_at, messages, text, u32_at};

const GROUP_LINK: u32 = 1;
const LINK_HEADER: usize = 16;
const IFLA_IFNAME: u16 = 3;
const IFLA_MASTER: u16 = 10;
/// Octets of a message, and messages that are read at once.
const PART: usize = 64 << 10;
const AT_ONCE: usize = 256;

/// The kernel's word of interfaces.
pub struct Events {
    socket: OwnedFd,
    part: Vec<u8>,
}

/// An interface that was made, changed or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// The bridge that it is, or was, a port of, by number.
    pub master: Option<u32>,
}

impl Events {
    /// Listens to those of this network namespace.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // No protocol is NETLINK_ROUTE, which is 0.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&socket, &SocketAddrNetlink::new(0, GROUP_LINK))?;
        let part = vec![0; PART];
        Ok(Self { socket, part })
    }

    /// Reads what has come. Whether the bridge should be looked at: something that `concerns` it has changed, or messages
    /// got lost.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn read(&mut self, concerns: impl Fn(&Changed) -> bool) -> io::Result<bool> {
        let mut any = false;
        for _ in 0..AT_ONCE {
            match recv(&self.socket, self.part.as_mut_slice(), RecvFlags::empty()) {
                Ok((octets, _)) => {
                    any |= changed(&self.part[..octets]).any(|link| concerns(&link));
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => break,
                Err(Errno::NOBUFS) => any = true,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(any)
    }
}

impl AsFd for Events {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The interfaces that messages are about.
fn changed(octets: &[u8]) -> impl Iterator<Item = Changed> {
    let of_links = messages(octets)
        .filter(|message| matches!(message.kind, libc::RTM_NEWLINK | libc::RTM_DELLINK));
    of_links.filter_map(|message| {
        let own = message.body.get(LINK_HEADER..)?;
        Some(Changed {
            index: u32::try_from(i32_at(message.body, 4)?).ok()?,
            name: attribute(own, IFLA_IFNAME).map(text).unwrap_or_default(),
            master: attribute(own, IFLA_MASTER)
                .and_then(|value| u32_at(value, 0))
                .filter(|master| *master != 0),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::Body;
    use std::process::Command;
    use std::time::{Duration, Instant};

    fn message(kind: u16, index: u32, master: Option<u32>) -> Vec<u8> {
        let mut body = Body::default()
            .octets(&[0; 4])
            .u32(index)
            .octets(&[0; 8])
            .attribute(IFLA_IFNAME, b"p1\0");
        if let Some(master) = master {
            body = body.attribute(IFLA_MASTER, &master.to_ne_bytes());
        }
        let octets = 16 + body.as_slice().len() as u32;
        let head = Body::default()
            .u32(octets)
            .octets(&kind.to_ne_bytes())
            .octets(&[0; 10]);
        [head.as_slice(), body.as_slice()].concat()
    }

    #[test]
    fn messages_of_interfaces_are_read_and_no_others() {
        let said = [
            message(libc::RTM_NEWLINK, 3, Some(9)),
            message(libc::RTM_NEWADDR, 4, None),
            message(libc::RTM_DELLINK, 5, None),
        ]
        .concat();
        let link = |index, master| Changed {
            index,
            name: "p1".into(),
            master,
        };
        let found: Vec<_> = changed(&said).collect();
        assert_eq!(found, [link(3, Some(9)), link(5, None)]);
        for end in 0..said.len() {
            assert!(changed(&said[..end]).count() <= 2);
        }
    }

    /// In a network namespace of its own, which ends with its thread.
    #[test]
    fn a_port_that_is_made_or_removed_is_heard_of() {
        let heard = std::thread::spawn(|| {
            // SAFETY: a plain system call, for this thread alone.
            if unsafe { libc::unshare(libc::CLONE_NEWNET) } < 0 {
                println!("skipped: no network namespace; run as root");
                return;
            }
            let mut events = Events::open().expect("a socket");
            let mut says = |words: &str, name: &str| {
                let done = Command::new("ip").args(words.split(' ')).status();
                assert!(done.expect("ip").success(), "{words}");
                let until = Instant::now() + Duration::from_secs(10);
                while Instant::now() < until {
                    if events.read(|link| link.name == name).expect("read") {
                        return;
                    }
                }
                panic!("{words}: not heard");
            };
            says("link add br0 type bridge", "br0");
            says("link add p1 type veth peer name h1", "p1");
            says("link set p1 master br0", "p1");
            says("link del p1", "p1");
            assert!(!events.read(|_| false).expect("read"));
        });
        heard.join().expect("the test");
    }
}
