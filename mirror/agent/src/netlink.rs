//! Netlink (RFC 3549): requests to the kernel, and the attributes of what it answers. As much as the agent needs: the
//! crate that knows all of its messages, netlink-packet-route, refuses routes with a congestion control, which are
//! looked for here.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::retry_on_intr;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send,
    socket_with,
};

/// Bytes of an answer's part: the kernel makes them no larger than 32 KiB.
const PART: usize = 64 << 10;
const HEADER: usize = 16;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const REQUEST: u16 = 1;
const ACK: u16 = 4;
const DUMP: u16 = 0x300;
/// NLM_F_DUMP_INTR: what is listed has changed meanwhile, so that the list may lack something, or have it twice.
const INTERRUPTED: u16 = 0x10;
/// How often a list is asked for that gets interrupted.
const ATTEMPTS: usize = 5;
/// Of an attribute's type: that it holds attributes, and that it is in network order.
const FLAGS_OF_TYPE: u16 = 0xc000;

/// A message: its type, and what comes after the header.
pub type Message = (u16, Vec<u8>);

/// A socket of one netlink protocol, in the network namespace of the thread that opened it.
pub struct Socket {
    fd: OwnedFd,
    last: u32,
}

impl Socket {
    /// For interfaces, routes and traffic control (rtnetlink(7)).
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn route() -> io::Result<Self> {
        Self::open(None) // NETLINK_ROUTE is 0
    }

    /// For sockets (sock_diag(7)).
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn diagnosis() -> io::Result<Self> {
        Self::open(Some(netlink::INET_DIAG))
    }

    fn open(protocol: Option<Protocol>) -> io::Result<Self> {
        let family = AddressFamily::NETLINK;
        let fd = socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        Ok(Self { fd, last: 0 })
    }

    /// Asks for all of a kind, and anew where what is listed has changed meanwhile.
    ///
    /// # Errors
    /// The kernel refuses, or the list was never whole.
    pub fn dump(&mut self, kind: u16, body: &Body) -> io::Result<Vec<Message>> {
        whole(|| self.ask(kind, DUMP, body))
    }

    /// Asks for one thing, or has it changed. `flags`: those of netlink(7) beyond NLM_F_REQUEST and NLM_F_ACK.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn ask_one(&mut self, kind: u16, flags: u16, body: &Body) -> io::Result<Vec<Message>> {
        Ok(self.ask(kind, flags | ACK, body)?.found)
    }

    fn ask(&mut self, kind: u16, flags: u16, body: &Body) -> io::Result<Answer> {
        self.last += 1;
        let mut request = Vec::with_capacity(HEADER + body.0.len());
        request.extend(((HEADER + body.0.len()) as u32).to_ne_bytes());
        request.extend(kind.to_ne_bytes());
        request.extend((REQUEST | flags).to_ne_bytes());
        request.extend(self.last.to_ne_bytes());
        request.extend([0; 4]);
        request.extend(&body.0);
        send(&self.fd, &request, SendFlags::empty())?;
        let mut answer = Answer::default();
        let mut part = vec![0; PART];
        loop {
            let (octets, _) =
                retry_on_intr(|| recv(&self.fd, part.as_mut_slice(), RecvFlags::empty()))?;
            if answer.takes(&part[..octets], self.last)? {
                return Ok(answer);
            }
        }
    }
}

/// What the kernel has answered so far.
#[derive(Debug, Default)]
struct Answer {
    found: Vec<Message>,
    interrupted: bool,
}

impl Answer {
    /// Takes a part of the answer to the request with this number. Whether it was the last.
    ///
    /// # Errors
    /// The kernel says one, at the beginning or in the middle.
    fn takes(&mut self, part: &[u8], number: u32) -> io::Result<bool> {
        for message in messages(part).filter(|message| message.number == number) {
            self.interrupted |= message.flags & INTERRUPTED != 0;
            // A list that ends early has its error at the end.
            let code = match message.kind {
                DONE => i32_at(message.body, 0).unwrap_or(0),
                ERROR => i32_at(message.body, 0).unwrap_or(-libc::EPROTO),
                kind => {
                    self.found.push((kind, message.body.to_vec()));
                    continue;
                }
            };
            return match code {
                code if code < 0 => Err(io::Error::from_raw_os_error(code.saturating_neg())),
                _ => Ok(true),
            };
        }
        Ok(false)
    }
}

/// A list that was not interrupted, of a few that are asked for.
fn whole(mut ask: impl FnMut() -> io::Result<Answer>) -> io::Result<Vec<Message>> {
    for _ in 0..ATTEMPTS {
        let answer = ask()?;
        if !answer.interrupted {
            return Ok(answer.found);
        }
    }
    Err(io::Error::other(format!(
        "the kernel's list has changed {ATTEMPTS} times while it was read"
    )))
}

/// A message of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Its type.
    pub kind: u16,
    flags: u16,
    number: u32,
    /// What comes after the header.
    pub body: &'a [u8],
}

/// The messages of what was read at once.
pub fn messages(mut part: &[u8]) -> impl Iterator<Item = Part<'_>> {
    std::iter::from_fn(move || {
        let octets = u32_at(part, 0)? as usize;
        let message = part.get(..octets).filter(|m| m.len() >= HEADER)?;
        part = part.get(aligned(octets)..).unwrap_or_default();
        Some(Part {
            kind: u16_at(message, 4)?,
            flags: u16_at(message, 6)?,
            number: u32_at(message, 8)?,
            body: &message[HEADER..],
        })
    })
}

/// The attributes that lie in `octets`: type and value.
pub fn attributes(mut octets: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(octets, 0)?);
        let kind = u16_at(octets, 2)? & !FLAGS_OF_TYPE;
        let value = octets.get(4..length)?;
        octets = octets.get(aligned(length)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The value of the attribute of this type.
pub fn attribute(octets: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(octets).find(|(k, _)| *k == kind).map(|(_, v)| v)
}

/// A text, which the kernel ends with a zero.
pub fn text(value: &[u8]) -> String {
    let end = value.iter().position(|b| *b == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

/// The number at a place; `None` behind the end.
pub fn u16_at(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(octets.get(at..at + 2)?.try_into().ok()?))
}

/// As [`u16_at`].
pub fn u32_at(octets: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(octets.get(at..at + 4)?.try_into().ok()?))
}

/// As [`u16_at`].
pub fn i32_at(octets: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_ne_bytes(octets.get(at..at + 4)?.try_into().ok()?))
}

const fn aligned(octets: usize) -> usize {
    octets.next_multiple_of(4)
}

/// What is sent behind a message's header: its fields, in host order, then attributes.
#[derive(Default)]
pub struct Body(Vec<u8>);

impl Body {
    /// With these octets more.
    #[must_use]
    pub fn octets(mut self, octets: &[u8]) -> Self {
        self.0.extend(octets);
        self
    }

    /// With a number more.
    #[must_use]
    pub fn u32(self, number: u32) -> Self {
        self.octets(&number.to_ne_bytes())
    }

    /// With an attribute more.
    #[must_use]
    pub fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        let length = 4 + value.len();
        self.0.extend((length as u16).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(aligned(self.0.len()), 0);
        self
    }

    /// As the value of an attribute.
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_written() {
        let inner = Body::default().attribute(16, b"cubic\0").u32(0);
        let body = Body::default()
            .attribute(1, &[7])
            .attribute(8 | 0x8000, inner.as_slice());
        let found: Vec<_> = attributes(body.as_slice()).collect();
        assert_eq!(found[0], (1, &[7][..]));
        let nested = attribute(body.as_slice(), 8).expect("nested");
        assert_eq!(attribute(nested, 16).map(text), Some("cubic".into()));
        assert_eq!(attribute(nested, 3), None);
    }

    #[test]
    fn what_is_cut_short_ends_the_list() {
        for octets in [&[][..], &[4], &[8, 0, 1, 0, 9], &[0, 0, 0, 0, 0, 0]] {
            assert_eq!(attributes(octets).count(), 0, "{octets:?}");
            assert_eq!(messages(octets).count(), 0, "{octets:?}");
        }
    }

    fn message(kind: u16, flags: u16, number: u32, body: &[u8]) -> Vec<u8> {
        let mut message = Vec::new();
        message.extend(((HEADER + body.len()) as u32).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        message.extend(number.to_ne_bytes());
        message.extend([0; 4]);
        message.extend(body);
        message
    }

    #[test]
    fn an_answer_ends_with_its_last_message() {
        let mut answer = Answer::default();
        let first = [message(16, 2, 7, b"here"), message(16, 2, 6, b"old.")].concat();
        assert!(!answer.takes(&first, 7).expect("right"));
        let last = message(DONE, 2, 7, &[0; 4]);
        assert!(answer.takes(&last, 7).expect("right"));
        assert_eq!(answer.found, [(16, b"here".to_vec())]);
        assert!(!answer.interrupted);
    }

    #[test]
    fn an_error_is_one_and_no_short_list() {
        let code = (-libc::ENOBUFS).to_ne_bytes();
        for kind in [ERROR, DONE] {
            let mut answer = Answer::default();
            let said = [message(16, 2, 7, b"here"), message(kind, 2, 7, &code)].concat();
            let error = answer.takes(&said, 7).expect_err("an error");
            assert_eq!(error.raw_os_error(), Some(libc::ENOBUFS), "{kind}");
        }
    }

    #[test]
    fn a_list_that_was_interrupted_is_asked_for_again() {
        let interrupted = |in_the_middle: bool| {
            let (first, last) = if in_the_middle {
                (INTERRUPTED, 0)
            } else {
                (0, INTERRUPTED)
            };
            let mut answer = Answer::default();
            let said = [
                message(16, 2 | first, 7, b"some"),
                message(DONE, 2 | last, 7, &[0; 4]),
            ]
            .concat();
            assert!(answer.takes(&said, 7).expect("right"));
            answer
        };
        let mut asked = 0;
        let found = whole(|| {
            asked += 1;
            Ok(match asked {
                1 | 2 => interrupted(asked == 1),
                _ => Answer {
                    found: vec![(16, b"all.".to_vec())],
                    interrupted: false,
                },
            })
        });
        assert_eq!(found.expect("a list"), [(16, b"all.".to_vec())]);
        assert_eq!(asked, 3);
        let mut asked = 0;
        let error = whole(|| {
            asked += 1;
            Ok(interrupted(true))
        });
        assert!(
            error
                .expect_err("never whole")
                .to_string()
                .contains("5 times")
        );
        assert_eq!(asked, ATTEMPTS);
    }
}
