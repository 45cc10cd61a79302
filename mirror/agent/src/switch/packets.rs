//! Frames by packet(7): what the ports hear of hosts and switches, and what is sent out of one.

use std::io;
use std::mem::{size_of, size_of_val};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use super::frames::SNAP;

/// SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT of linux/filter.h.
const VLAN_TAG: u32 = 0xffff_f000 + 48;

/// The frames of all interfaces that are LLDP, ARP or neighbour discovery; a bridge hands others on before any socket
/// that asks for those alone.
pub struct Packets {
    socket: OwnedFd,
}

impl Packets {
    /// Opens the socket in this network namespace.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn open() -> io::Result<Self> {
        const ALL: u16 = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: a plain system call; the descriptor is owned at once. Protocol 0: nothing comes before it is bound.
        let socket = unsafe {
            let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
            let fd = libc::socket(libc::AF_PACKET, kind, 0);
            succeeded(fd)?;
            OwnedFd::from_raw_fd(fd)
        };
        let packets = Self { socket };
        let mut filter = filter();
        let program = libc::sock_fprog {
            len: filter.len() as u16,
            filter: filter.as_mut_ptr(),
        };
        packets.set(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)?;
        packets.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1i32)?;
        let at = address(0, ALL);
        // SAFETY: the address lives through the call, and its size is its own.
        succeeded(unsafe {
            libc::bind(
                packets.socket.as_raw_fd(),
                std::ptr::from_ref(&at).cast(),
                size_of_val(&at) as libc::socklen_t,
            )
        })?;
        Ok(packets)
    }

    fn set<T>(&self, level: i32, option: i32, value: &T) -> io::Result<()> {
        // SAFETY: the value lives through the call, and its size is its own.
        succeeded(unsafe {
            libc::setsockopt(
                self.socket.as_raw_fd(),
                level,
                option,
                std::ptr::from_ref(value).cast(),
                size_of::<T>() as libc::socklen_t,
            )
        })
    }

    /// Waits until a frame has come, or something can be read of what is there beside, for so long at most.
    pub fn wait(&self, beside: Option<BorrowedFd<'_>>, time: Duration) {
        // poll(2) passes over what is no descriptor.
        let beside = beside.map_or(-1, |beside| beside.as_raw_fd());
        let mut ready = [self.socket.as_raw_fd(), beside].map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        let milliseconds = i32::try_from(time.as_millis()).unwrap_or(i32::MAX).max(1);
        // SAFETY: as many descriptors as there are, which live through the call. Whatever it says, they are read next.
        unsafe {
            libc::poll(
                ready.as_mut_ptr(),
                ready.len() as libc::nfds_t,
                milliseconds,
            )
        };
    }

    /// The next frame's beginning, and the interface that it came in by; `None` where none has come.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn receive<'b>(&self, buffer: &'b mut [u8; SNAP]) -> io::Result<Option<(u32, &'b [u8])>> {
        let mut from = address(0, 0);
        let mut length = size_of_val(&from) as libc::socklen_t;
        // SAFETY: no more is written than there is room for; all of it lives through the call.
        let octets = unsafe {
            libc::recvfrom(
                self.socket.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                0,
                std::ptr::from_mut(&mut from).cast(),
                &raw mut length,
            )
        };
        match usize::try_from(octets) {
            Ok(octets) => {
                let port = u32::try_from(from.sll_ifindex).unwrap_or_default();
                Ok(Some((port, &buffer[..octets.min(SNAP)])))
            }
            Err(_) => {
                let error = io::Error::last_os_error();
                match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                    _ => Err(error),
                }
            }
        }
    }

    /// Sends a frame out of an interface.
    ///
    /// # Errors
    /// The kernel refuses, or the interface is not there or not up.
    pub fn send(&self, port: u32, frame: &[u8]) -> io::Result<()> {
        let to = address(port, 0);
        // SAFETY: frame and address live through the call, and are of the sizes that are said.
        let sent = unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
                std::ptr::from_ref(&to).cast(),
                size_of_val(&to) as libc::socklen_t,
            )
        };
        succeeded(if sent < 0 { -1 } else { 0 })
    }
}

fn address(interface: u32, protocol: u16) -> libc::sockaddr_ll {
    // SAFETY: integers alone.
    let mut at: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    at.sll_family = libc::AF_PACKET as u16;
    at.sll_protocol = protocol;
    at.sll_ifindex = i32::try_from(interface).unwrap_or_default();
    at
}

/// What is let through, in the machine language of classic BPF: LLDP, ARP, and ICMPv6's neighbour solicitations and
/// advertisements, none of them of a VLAN; so much of each as is looked at.
fn filter() -> [libc::sock_filter; 13] {
    const LOAD_WORD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const LOAD_HALF: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_ABS;
    const LOAD_BYTE: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
    const IS: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    let step = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    [
        step(LOAD_WORD, VLAN_TAG, 0, 0),
        step(IS, 0, 0, 10),
        step(LOAD_HALF, 12, 0, 0),
        step(IS, 0x88cc, 7, 0),
        step(IS, 0x0806, 6, 0),
        step(IS, 0x86dd, 0, 6),
        step(LOAD_BYTE, 20, 0, 0),
        step(IS, 58, 0, 4),
        step(LOAD_BYTE, 54, 0, 0),
        step(IS, 135, 1, 0),
        step(IS, 136, 0, 1),
        step(RETURN, SNAP as u32, 0, 0),
        step(RETURN, 0, 0, 0),
    ]
}

fn succeeded(outcome: i32) -> io::Result<()> {
    if outcome < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the filter as the kernel does.
    fn takes(frame: &[u8]) -> bool {
        let (filter, mut at, mut value) = (filter(), 0, 0);
        loop {
            let step = filter[at];
            at += 1;
            let k = step.k as usize;
            match step.code {
                0x20 if step.k == VLAN_TAG => value = 0,
                0x28 => match frame.get(k..k + 2) {
                    Some(two) => value = u32::from(two[0]) << 8 | u32::from(two[1]),
                    None => return false,
                },
                0x30 => match frame.get(k) {
                    Some(one) => value = u32::from(*one),
                    None => return false,
                },
                0x15 => at += usize::from(if value == step.k { step.jt } else { step.jf }),
                0x06 => return step.k != 0,
                code => panic!("{code:#x}"),
            }
        }
    }

    #[test]
    fn what_tells_of_hosts_and_switches_is_taken_and_nothing_else() {
        let frame = |kind: [u8; 2], next: u8, icmp: u8| {
            let mut frame = vec![0; 90];
            frame[12..14].copy_from_slice(&kind);
            frame[20] = next;
            frame[54] = icmp;
            frame
        };
        assert!(takes(&frame([0x88, 0xcc], 0, 0)));
        assert!(takes(&frame([8, 6], 0, 0)));
        assert!(takes(&frame([0x86, 0xdd], 58, 135)) && takes(&frame([0x86, 0xdd], 58, 136)));
        for other in [
            frame([8, 0], 58, 135),
            frame([0x86, 0xdd], 6, 135),
            frame([0x86, 0xdd], 58, 134),
            frame([0x86, 0xdd], 58, 137),
            vec![0; 12],
        ] {
            assert!(!takes(&other));
        }
    }
}
