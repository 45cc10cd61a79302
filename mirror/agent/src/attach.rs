//! The programs at the interfaces: loaded over the pinned maps, and attached so that they stay when the agent does not.

use std::io;

use aya::programs::SchedClassifier;
use aya::programs::tc::{
    NlOptions, SchedClassifierLink, TcAttachOptions, TcHandle, qdisc_add_clsact,
};

use crate::interfaces::{Interface, interface, interfaces};
use crate::pins::{Lock, PinError, Pins};
use crate::program::{LoadError, Program};
use crate::sockets::Sockets;
use crate::tc::{self, HANDLE, Hook, PRIORITY};

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

/// Pins of another layout are in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherLayout {
    /// Connections with entries there that are still there; `None` where that can't be told.
    pub living: Option<usize>,
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

    /// What an agent of another release has left, if it has.
    pub fn other_layout(&self, sockets: &mut Sockets) -> Option<OtherLayout> {
        (!self.pins.others().is_empty()).then(|| OtherLayout {
            living: self.pins.others_living(sockets),
        })
    }

    /// Forgets that.
    ///
    /// # Errors
    /// The system refuses.
    pub fn forget_others(&self) -> Result<(), AttachError> {
        Ok(self.pins.remove_others()?)
    }

    /// Attaches the programs where they are not, puts them in the place of older ones, and takes them off interfaces
    /// that are not ours. What it changed, for people.
    ///
    /// # Errors
    /// There is no such interface, or the kernel refuses.
    pub fn ensure(&mut self) -> Result<Vec<String>, AttachError> {
        let mut changes = Vec::new();
        let right = self.pinned_are_right();
        for name in self.interfaces.clone() {
            let failed = |error: io::Error| AttachError::Interface {
                name: name.clone(),
                cause: cause(&error),
            };
            let interface = interface(&name).map_err(failed)?;
            if !tc::has_clsact(interface.index).map_err(failed)? {
                qdisc_add_clsact(&name).map_err(|error| AttachError::Interface {
                    name: name.clone(),
                    cause: format!(
                        "clsact refused: {error}; the kernel needs CONFIG_NET_SCH_INGRESS and CONFIG_NET_CLS_BPF"
                    ),
                })?;
                self.pins.remember_clsact(interface.index)?;
            }
            for hook in Hook::ALL {
                let there = tc::ours(interface.index, hook).map_err(failed)?;
                let pinned = self.pins.program(hook).map(|program| program.id());
                match &there {
                    Some(filter) if right && filter.program == pinned => continue,
                    Some(_) => changes.push(format!("{} replaced on {name}", hook.program())),
                    None => changes.push(format!("{} attached to {name}", hook.program())),
                }
                let create = there.is_none();
                if right {
                    let mut pinned = self.pins.open_program(hook)?;
                    attach(&mut pinned, &name, hook, create)?;
                } else {
                    attach(self.classifier(hook)?, &name, hook, create)?;
                }
            }
        }
        if !right {
            for hook in Hook::ALL {
                let program = match hook {
                    Hook::Ingress => self.program.ingress()?,
                    Hook::Egress => self.program.egress()?,
                };
                self.pins.set_program(hook, program)?;
            }
        }
        changes.extend(self.leave_others()?);
        Ok(changes)
    }

    fn classifier(&mut self, hook: Hook) -> Result<&mut SchedClassifier, LoadError> {
        match hook {
            Hook::Ingress => self.program.ingress(),
            Hook::Egress => self.program.egress(),
        }
    }

    /// Whether the pinned programs do what the loaded ones do, over the same maps. If so they stay, and no packet
    /// passes between two programs.
    fn pinned_are_right(&mut self) -> bool {
        Hook::ALL.into_iter().all(|hook| {
            let Some(pinned) = self.pins.program(hook) else {
                return false;
            };
            let same = self
                .classifier(hook)
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

/// The agent's lock on pins, which are made where there are none.
fn lock(pins: &Pins) -> Result<Lock, PinError> {
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

/// Takes the programs off an interface, and its clsact with them where an agent put it there and nobody else uses it.
/// Whether anything was there.
///
/// # Errors
/// The kernel refuses.
pub fn detach(pins: &Pins, interface: &Interface) -> Result<bool, AttachError> {
    let failed = |error: io::Error| AttachError::Interface {
        name: interface.name.clone(),
        cause: cause(&error),
    };
    let (mut was_there, mut others) = (false, false);
    for hook in Hook::ALL {
        for filter in tc::filters(interface.index, hook).map_err(failed)? {
            if filter.is_ours(hook) {
                tc::remove(interface.index, hook).map_err(failed)?;
                was_there = true;
            } else {
                others = true;
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

fn attach(
    program: &mut SchedClassifier,
    name: &str,
    hook: Hook,
    create: bool,
) -> Result<(), AttachError> {
    let failed = |error: &dyn std::fmt::Display| AttachError::Interface {
        name: name.to_owned(),
        cause: format!("{} not attached: {error}", hook.program()),
    };
    let handle = TcHandle::new(0, HANDLE);
    let link = if create {
        // Not tcx, which the newest kernels would take: it does not know STOLEN.
        let options = TcAttachOptions::Netlink(NlOptions {
            priority: PRIORITY,
            handle,
            classid: None,
        });
        program.attach_with_options(name, hook.attach_type(), options)
    } else {
        let there = SchedClassifierLink::attached(name, hook.attach_type(), PRIORITY, handle, None)
            .map_err(|e| failed(&e))?;
        program.attach_to_link(there)
    };
    let link = link
        .and_then(|id| program.take_link(id))
        .map_err(|e| failed(&e))?;
    // A link that is dropped detaches; this one is to outlive us.
    std::mem::forget(link);
    Ok(())
}

fn cause(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("{error}; run as root, or with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN")
        }
        _ => error.to_string(),
    }
}
