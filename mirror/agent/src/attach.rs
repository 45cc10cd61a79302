//! The programs at the interfaces: loaded over the pinned maps, and attached so that they stay when the agent does not.
//!
//! ```text
//!   a frame ──▶ mr_ingress ──▶ mr_ingress of another release ──▶ the next filter, or the stack
//!               its own flows     the flows that it had when this release came, until their connections have ended
//! ```
//!
//! A release whose maps have another layout can't take over the flows of the one before. So both stand at the interface,
//! the latest first, each with its pins. It lets marked frames go on that it knows nothing of (`mr_config.before`): only
//! the last one is to drop them.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::PathBuf;

use aya::programs::tc::{
    NlOptions, SchedClassifierLink, TcAttachOptions, TcError, TcHandle, qdisc_add_clsact,
};
use aya::programs::{ProgramError, SchedClassifier};

use crate::cost::{Cost, costs};
use crate::interfaces::{Interface, interface, interfaces};
use crate::layout::Key;
use crate::pins::{Lock, PinError, Pins};
use crate::program::{LoadError, Program};
use crate::sockets::Sockets;
use crate::tc::{self, Filter, HANDLES, Hook, PRIORITY};

/// How often pins that vanish are made again.
const ATTEMPTS: usize = 5;

/// Why the programs are not at the interfaces.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The kernel does not take them.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The pins can't be used.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// An interface can't be used.
    #[error("interface {name}: {cause}")]
    Interface {
        /// Its name.
        name: String,
        /// What is in the way, and the way out.
        cause: String,
    },
    /// Another release's maps can't be read at all.
    #[error(
        "{}: programs of another release are attached, and which connections they have can't be told; `trunkline mirror \
         run --replace` puts these in their place, which may break the connections",
        path.display()
    )]
    Unreadable {
        /// The folder of the pins.
        path: PathBuf,
    },
}

/// What became of what an agent before had left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adopted {
    /// There was nothing.
    Nothing,
    /// Its maps are used on; its programs, too, or newer ones in their place.
    Maps,
}

/// Loaded programs and where they go.
pub struct Attachment {
    pins: Pins,
    program: Program,
    interfaces: Vec<String>,
    _lock: Lock,
}

impl Attachment {
    /// Takes the lock and loads the programs over the pinned maps, which are made where there are none. Nothing is
    /// attached yet.
    ///
    /// # Errors
    /// The pins can't be used, or the kernel refuses the programs.
    pub fn load(pins: Pins, interfaces: Vec<String>) -> Result<(Self, Adopted), AttachError> {
        let lock = lock(&pins)?;
        if pins.is_going_off() {
            let path = pins.folder().to_owned();
            return Err(PinError::GoingOff { path }.into());
        }
        pins.make_layout()?;
        let adopted = if pins.is_here() {
            Adopted::Maps
        } else {
            Adopted::Nothing
        };
        let program = Program::load_pinned(&pins.layout())?;
        let attachment = Self {
            pins,
            program,
            interfaces,
            _lock: lock,
        };
        Ok((attachment, adopted))
    }

    /// Whether `trunkline mirror off` takes the programs off.
    pub fn is_going_off(&self) -> bool {
        self.pins.is_going_off()
    }

    /// Whether another release's programs stand behind these.
    #[must_use]
    pub fn has_others(&self) -> bool {
        !self.pins.others().is_empty()
    }

    /// The connections that they have, and that are still there; `None` where that can't be told.
    #[must_use]
    pub fn others_living(&self, sockets: &mut Sockets) -> Option<HashSet<Key>> {
        self.pins.others_living(sockets)
    }

    /// What the programs cost, by hook.
    #[must_use]
    pub fn costs(&self) -> BTreeMap<&'static str, Cost> {
        costs(&self.pins)
    }

    /// Forgets them; they are taken off when it is seen to what is attached.
    ///
    /// # Errors
    /// The system refuses.
    pub fn forget_others(&self) -> Result<(), AttachError> {
        Ok(self.pins.remove_others()?)
    }

    /// Attaches the programs where they are not, puts them in the place of older ones, and takes them off interfaces
    /// that are not ours. What it changed, for people. An interface that is not there keeps no other from that.
    ///
    /// # Errors
    /// There is no such interface, or the kernel refuses: the first of them.
    pub fn ensure(&mut self) -> Result<Vec<String>, AttachError> {
        let mut changes = Vec::new();
        let right = self.pinned_are_right();
        let mut failed = None;
        for name in self.interfaces.clone() {
            if let Err(error) = self.ensure_at(&name, right, &mut changes) {
                failed.get_or_insert(error);
            }
        }
        if let Some(error) = failed {
            for change in changes {
                tracing::warn!("{change}");
            }
            return Err(error);
        }
        if !right {
            for hook in Hook::ALL {
                let program = classifier(&mut self.program, hook)?;
                self.pins.set_program(hook, program)?;
            }
        }
        changes.extend(self.leave_others()?);
        Ok(changes)
    }

    fn ensure_at(
        &mut self,
        name: &str,
        right: bool,
        changes: &mut Vec<String>,
    ) -> Result<(), AttachError> {
        let interface = interface(name).map_err(|error| AttachError::Interface {
            name: name.to_owned(),
            cause: cause(&error),
        })?;
        add_clsact(&self.pins, &interface)?;
        for hook in Hook::ALL {
            let older = self.ensure_others(&interface, hook, changes)?;
            self.ensure_own(&interface, hook, &older, right, changes)?;
        }
        Ok(())
    }

    /// Attaches other releases' programs where they are not, as these here let pass what they are to drop; the programs.
    fn ensure_others(
        &self,
        interface: &Interface,
        hook: Hook,
        changes: &mut Vec<String>,
    ) -> Result<Vec<u32>, AttachError> {
        let mut older = Vec::new();
        for other in self.pins.others() {
            let Some(id) = other.program(hook).map(|program| program.id()) else {
                continue;
            };
            let there = filters(interface, hook)?;
            if !there.iter().any(|filter| filter.program == Some(id)) {
                let mut program = other.open_program(hook)?;
                attach(&mut program, interface, hook, Place::before(&there))?;
                let name = &interface.name;
                changes.push(format!(
                    "{} of another release attached to {name}",
                    hook.program()
                ));
            }
            older.push(id);
        }
        Ok(older)
    }

    /// Attaches the programs before those, where they are not, or in the place of ones of the same layout.
    fn ensure_own(
        &mut self,
        interface: &Interface,
        hook: Hook,
        older: &[u32],
        right: bool,
        changes: &mut Vec<String>,
    ) -> Result<(), AttachError> {
        let there = filters(interface, hook)?;
        let is_older = |filter: &Filter| filter.program.is_some_and(|id| older.contains(&id));
        let pinned = self.pins.program(hook).map(|program| program.id());
        let first = there.first().filter(|filter| !is_older(filter));
        let (program, name) = (hook.program(), &interface.name);
        let place = match first {
            Some(filter) if right && filter.program == pinned => None,
            Some(filter) => {
                changes.push(format!("{program} replaced on {name}"));
                Some(Place::Of(filter.handle))
            }
            None => {
                changes.push(format!("{program} attached to {name}"));
                Some(Place::before(&there))
            }
        };
        if let Some(place) = place {
            if right {
                let mut pinned = self.pins.open_program(hook)?;
                attach(&mut pinned, interface, hook, place)?;
            } else {
                let program = classifier(&mut self.program, hook)?;
                attach(program, interface, hook, place)?;
            }
        }
        let left = |filter: &&Filter| !is_older(filter) && Some(*filter) != first;
        for filter in there.iter().filter(left) {
            tc::remove(interface.index, hook, filter.handle).map_err(|e| failed(interface, &e))?;
            changes.push(format!("{program} of another release taken off {name}"));
        }
        Ok(())
    }

    /// Whether the pinned programs do what the loaded ones do, over the same maps. If so they stay, and no packet
    /// passes between two programs.
    fn pinned_are_right(&mut self) -> bool {
        Hook::ALL.into_iter().all(|hook| {
            let Some(pinned) = self.pins.program(hook) else {
                return false;
            };
            let same = classifier(&mut self.program, hook)
                .ok()
                .and_then(|program| program.info().ok())
                .is_some_and(|loaded| loaded.tag() == pinned.tag());
            same && self.pins.are_of(&pinned)
        })
    }

    fn leave_others(&self) -> Result<Vec<String>, AttachError> {
        let mut changes = Vec::new();
        let all = interfaces().map_err(|error| AttachError::Interface {
            name: String::from("all"),
            cause: cause(&error),
        })?;
        for interface in all {
            if !self.interfaces.contains(&interface.name) && detach(&self.pins, &interface)? {
                changes.push(format!("programs taken off {}", interface.name));
            }
        }
        Ok(changes)
    }
}

fn classifier(program: &mut Program, hook: Hook) -> Result<&mut SchedClassifier, LoadError> {
    match hook {
        Hook::Ingress => program.ingress(),
        Hook::Egress => program.egress(),
        Hook::Port => Err(LoadError::Missing(hook.program())),
    }
}

/// The agent's lock on pins, which are made where there are none.
///
/// # Errors
/// Another agent has it, or the pins can't be made.
pub fn lock(pins: &Pins) -> Result<Lock, PinError> {
    // Whoever takes the programs off may remove the folder in between.
    for _ in 0..ATTEMPTS {
        pins.make()?;
        match pins.lock() {
            Err(PinError::System { error, .. }) if error.kind() == io::ErrorKind::NotFound => {}
            outcome => return outcome,
        }
    }
    pins.make()?;
    pins.lock()
}

/// Makes an interface's clsact where it has none, and remembers that.
///
/// # Errors
/// The kernel refuses.
pub fn add_clsact(pins: &Pins, interface: &Interface) -> Result<(), AttachError> {
    if tc::has_clsact(interface.index).map_err(|error| failed(interface, &error))? {
        return Ok(());
    }
    qdisc_add_clsact(&interface.name).map_err(|error| {
        let name = interface.name.clone();
        let taken =
            matches!(&error, TcError::NetlinkError(e) if e.raw_os_error() == Some(libc::EEXIST));
        let remedy = if taken {
            format!("another qdisc is at its ingress: `tc qdisc del dev {name} ingress`")
        } else {
            String::from("the kernel needs CONFIG_NET_SCH_INGRESS and CONFIG_NET_CLS_BPF")
        };
        AttachError::Interface {
            name,
            cause: format!("clsact refused: {error}; {remedy}"),
        }
    })?;
    Ok(pins.remember_clsact(interface.index)?)
}

/// Takes the programs off an interface, and its clsact with them where an agent put it there and nobody else uses it.
/// Whether anything was there.
///
/// # Errors
/// The kernel refuses.
pub fn detach(pins: &Pins, interface: &Interface) -> Result<bool, AttachError> {
    take_off(pins, interface, &Hook::ALL)
}

/// The same, of the programs at these hooks.
///
/// # Errors
/// The kernel refuses.
pub fn take_off(pins: &Pins, interface: &Interface, ours: &[Hook]) -> Result<bool, AttachError> {
    let failed = |error: io::Error| failed(interface, &error);
    let (mut was_there, mut others) = (false, false);
    for side in Hook::ALL {
        for filter in tc::filters(interface.index, side).map_err(failed)? {
            let own = |hook: &&Hook| hook.parent() == side.parent() && filter.is_ours(**hook);
            match ours.iter().find(own) {
                Some(hook) => {
                    tc::remove(interface.index, *hook, filter.handle).map_err(failed)?;
                    was_there = true;
                }
                None => others = true,
            }
        }
    }
    if pins.take_clsact(interface.index) && !others {
        if tc::has_clsact(interface.index).map_err(failed)? {
            tc::remove_clsact(interface.index).map_err(failed)?;
        }
        was_there = true;
    }
    Ok(was_there)
}

/// Where a program goes among those of all releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Before them, with a handle that none has.
    Before(u16),
    /// In the place of the one with this handle.
    Of(u32),
}

impl Place {
    fn before(there: &[Filter]) -> Self {
        let taken: Vec<u32> = there.iter().map(|filter| filter.handle).collect();
        let lowest = taken.iter().copied().min().unwrap_or(u32::MAX);
        let free = |handle: &u16| !taken.contains(&u32::from(*handle));
        let mut handles = HANDLES.rev();
        let lower = handles.clone().find(|handle| u32::from(*handle) < lowest);
        // If none is free the kernel says so.
        let handle = lower.or_else(|| handles.find(free));
        Self::Before(handle.unwrap_or(*HANDLES.end()))
    }
}

fn filters(interface: &Interface, hook: Hook) -> Result<Vec<Filter>, AttachError> {
    tc::ours(interface.index, hook).map_err(|error| failed(interface, &error))
}

/// Attaches a program, which stays when this process ends.
///
/// # Errors
/// The kernel refuses.
pub fn attach(
    program: &mut SchedClassifier,
    interface: &Interface,
    hook: Hook,
    place: Place,
) -> Result<(), AttachError> {
    let name = &interface.name;
    let link = match place {
        Place::Before(handle) => {
            // Not tcx, which the newest kernels would take: it does not know STOLEN.
            let options = TcAttachOptions::Netlink(NlOptions {
                priority: PRIORITY,
                handle: TcHandle::new(0, handle),
                classid: None,
            });
            program.attach_with_options(name, hook.attach_type(), options)
        }
        Place::Of(handle) => {
            let (kind, handle) = (hook.attach_type(), TcHandle::from(handle));
            SchedClassifierLink::attached(name, kind, PRIORITY, handle, None)
                .map_err(ProgramError::from)
                .and_then(|there| program.attach_to_link(there))
        }
    };
    let link =
        link.and_then(|id| program.take_link(id))
            .map_err(|error| AttachError::Interface {
                name: name.clone(),
                cause: format!("{} not attached: {error}", hook.program()),
            })?;
    // A link that is dropped detaches; this one is to outlive us.
    std::mem::forget(link);
    Ok(())
}

/// What is in the way at an interface, and the way out.
pub fn failed(interface: &Interface, error: &io::Error) -> AttachError {
    AttachError::Interface {
        name: interface.name.clone(),
        cause: cause(error),
    }
}

/// The same, of whatever it is.
pub fn cause(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("{error}; run as root, or with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN")
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_has_the_lowest_handle_as_long_as_there_is_one() {
        let mut there: Vec<Filter> = Vec::new();
        for expected in HANDLES.rev() {
            assert_eq!(Place::before(&there), Place::Before(expected));
            let filter = Filter {
                priority: PRIORITY,
                handle: expected.into(),
                kind: String::from("bpf"),
                name: String::from("mr_ingress"),
                program: None,
            };
            assert!(filter.is_ours(Hook::Ingress));
            there.push(filter);
        }
        let first = there.remove(0);
        assert_eq!(Place::before(&there), Place::Before(0x4d52));
        assert_eq!(u32::from(HANDLES.last().expect("one")), first.handle);
    }
}
