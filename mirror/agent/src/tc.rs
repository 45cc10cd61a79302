//! Traffic control of an interface: its clsact qdisc, and which filters are on it (tc(8), tc-bpf(8)).

use std::io;

use aya::programs::TcAttachType;

use crate::netlink::{Body, Message, Socket, attribute, attributes, i32_at, text, u32_at};

const HEADER: usize = 20;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_ID: u16 = 11;
const CLSACT: u32 = 0xffff_fff1;
const CLSACT_HANDLE: u32 = 0xffff_0000;

/// Priority of our filters: before all others, as a filter that says `ok` ends the list.
pub const PRIORITY: u16 = 1;
/// Their handles, by which they are known. The kernel asks programs of one priority in the order in which they came, the
/// latest first, so a new release's stands before an older one's. Its handle is the lower one, too: the kernel may as well
/// go by these one day.
pub const HANDLES: std::ops::RangeInclusive<u16> = 0x4d43..=0x4d52;
/// That of a switch's, which may be at the same interface as a host's.
pub const PORT_HANDLE: u16 = 0x4d53;

/// Where at an interface a filter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// What comes in.
    Ingress,
    /// What goes out.
    Egress,
    /// What comes in at a bridge's port: of a switch.
    Port,
}

impl Hook {
    /// Those of a host's interface.
    pub const ALL: [Self; 2] = [Self::Ingress, Self::Egress];

    /// Where in an interface's clsact it is.
    #[must_use]
    pub const fn parent(self) -> u32 {
        match self {
            Self::Ingress | Self::Port => 0xffff_fff2,
            Self::Egress => 0xffff_fff3,
        }
    }

    /// The name of our program there.
    #[must_use]
    pub const fn program(self) -> &'static str {
        match self {
            Self::Ingress => "mr_ingress",
            Self::Egress => "mr_egress",
            Self::Port => "mr_switch",
        }
    }

    /// As aya says it.
    #[must_use]
    pub const fn attach_type(self) -> TcAttachType {
        match self {
            Self::Ingress | Self::Port => TcAttachType::Ingress,
            Self::Egress => TcAttachType::Egress,
        }
    }
}

/// A filter, as the kernel tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The lower, the earlier it is asked.
    pub priority: u16,
    /// Tells it from others of the same priority.
    pub handle: u32,
    /// `bpf`, `u32`, `flower`.
    pub kind: String,
    /// Of a `bpf` filter: what it is called.
    pub name: String,
    /// Of a `bpf` filter: its program.
    pub program: Option<u32>,
}

impl Filter {
    /// Whether an agent has put it there.
    #[must_use]
    pub fn is_ours(&self, hook: Hook) -> bool {
        let is_known = u16::try_from(self.handle).is_ok_and(|handle| match hook {
            Hook::Ingress | Hook::Egress => HANDLES.contains(&handle),
            Hook::Port => handle == PORT_HANDLE,
        });
        self.kind == "bpf" && self.priority == PRIORITY && is_known && self.name == hook.program()
    }
}

/// The filters of an interface's clsact in the order in which they are asked.
///
/// # Errors
/// The kernel refuses.
pub fn filters(interface: u32, hook: Hook) -> io::Result<Vec<Filter>> {
    let body = header(interface, 0, hook.parent());
    let answers = Socket::route()?.dump(libc::RTM_GETTFILTER, &body)?;
    let mut found: Vec<_> = answers.iter().filter_map(filter).collect();
    found.sort_by_key(|filter| filter.priority);
    Ok(found)
}

/// Our filters there, in the same order: this release's, and behind it those of others.
///
/// # Errors
/// The kernel refuses.
pub fn ours(interface: u32, hook: Hook) -> io::Result<Vec<Filter>> {
    let all = filters(interface, hook)?.into_iter();
    Ok(all.filter(|filter| filter.is_ours(hook)).collect())
}

fn filter((_, body): &Message) -> Option<Filter> {
    let (handle, info) = (u32_at(body, 8)?, u32_at(body, 16)?);
    let own = body.get(HEADER..)?;
    let options = attribute(own, TCA_OPTIONS).unwrap_or_default();
    // Each priority is told of for itself, too, without a handle.
    (handle != 0).then(|| Filter {
        priority: (info >> 16) as u16,
        handle,
        kind: attribute(own, TCA_KIND).map(text).unwrap_or_default(),
        name: attribute(options, TCA_BPF_NAME)
            .map(text)
            .unwrap_or_default(),
        program: attribute(options, TCA_BPF_ID).and_then(|v| u32_at(v, 0)),
    })
}

/// Whether an interface has a clsact.
///
/// # Errors
/// The kernel refuses.
pub fn has_clsact(interface: u32) -> io::Result<bool> {
    let body = header(interface, 0, 0);
    let qdiscs = Socket::route()?.dump(libc::RTM_GETQDISC, &body)?;
    Ok(qdiscs.iter().any(|(_, body)| {
        let of = i32_at(body, 4).and_then(|index| u32::try_from(index).ok());
        of == Some(interface)
            && body.get(HEADER..).is_some_and(|own| {
                attributes(own).any(|(kind, v)| kind == TCA_KIND && text(v) == "clsact")
            })
    }))
}

/// Removes an interface's clsact, with whatever filters are on it.
///
/// # Errors
/// The kernel refuses.
pub fn remove_clsact(interface: u32) -> io::Result<()> {
    let body = header(interface, CLSACT_HANDLE, CLSACT);
    Socket::route()?.ask_one(libc::RTM_DELQDISC, 0, &body)?;
    Ok(())
}

/// Removes one of our filters.
///
/// # Errors
/// The kernel refuses.
pub fn remove(interface: u32, hook: Hook, handle: u32) -> io::Result<()> {
    let all = (libc::ETH_P_ALL as u16).to_be();
    let body = Body::default()
        .u32(0)
        .u32(interface)
        .u32(handle)
        .u32(hook.parent())
        .u32(u32::from(PRIORITY) << 16 | u32::from(all));
    Socket::route()?.ask_one(libc::RTM_DELTFILTER, 0, &body)?;
    Ok(())
}

/// struct tcmsg.
fn header(interface: u32, handle: u32, parent: u32) -> Body {
    Body::default()
        .u32(0)
        .u32(interface)
        .u32(handle)
        .u32(parent)
        .u32(0)
}
