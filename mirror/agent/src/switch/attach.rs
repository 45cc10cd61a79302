//! The program at a bridge's ports: loaded over the pinned maps, and attached so that it stays when the agent does not.

use std::collections::HashSet;
use std::path::Path;

use super::bridge::BridgePort;
use super::program::{LAYOUT, MAPS, SwitchProgram};
use crate::attach::{AttachError, Place, add_clsact, attach, cause, failed, lock, take_off};
use crate::interfaces::{Interface, interfaces};
use crate::pins::{Lock, PinError, Pins};
use crate::tc::{self, Hook, PORT_HANDLE};

/// The switch's pins in a folder.
#[must_use]
pub fn pins(folder: &Path) -> Pins {
    Pins::of(folder, LAYOUT, &MAPS)
}

/// Whether there is nothing of a host's programs, which would be taken for another release's.
///
/// # Errors
/// There is.
pub fn check(pins: &Pins) -> Result<(), PinError> {
    let others = pins.others();
    if others
        .iter()
        .all(|other| other.program(Hook::Port).is_some())
    {
        return Ok(());
    }
    let path = pins.folder().to_owned();
    Err(PinError::OfAHost { path })
}

/// The loaded program.
pub struct Attachment {
    pins: Pins,
    program: SwitchProgram,
    /// Programs of ours that may be attached: those that were pinned, by number.
    known: HashSet<u32>,
    _lock: Lock,
}

impl Attachment {
    /// Takes the lock and loads the program over the pinned maps, which are made where there are none. Nothing is attached
    /// yet.
    ///
    /// # Errors
    /// The pins can't be used, or the kernel refuses the program.
    pub fn load(pins: Pins) -> Result<Self, AttachError> {
        check(&pins)?;
        let lock = lock(&pins)?;
        if pins.is_going_off() {
            let path = pins.folder().to_owned();
            return Err(PinError::GoingOff { path }.into());
        }
        pins.make_layout()?;
        let program = SwitchProgram::load_pinned(&pins.layout())?;
        let known = pinned(&pins);
        Ok(Self {
            pins,
            program,
            known,
            _lock: lock,
        })
    }

    /// Attaches the program to these ports where it is not, puts it in the place of an older one, and takes it off
    /// interfaces that are no port any more. What it changed, for people.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn ensure(&mut self, ports: &[BridgePort]) -> Result<Vec<String>, AttachError> {
        let mut changes = Vec::new();
        if !self.is_pinned()? {
            self.pins
                .set_program(Hook::Port, self.program.classifier()?)?;
            self.known
                .extend(self.pins.program(Hook::Port).map(|program| program.id()));
        }
        let wanted = self.pins.program(Hook::Port).map(|program| program.id());
        for port in ports {
            let interface = Interface {
                index: port.number,
                name: port.name.clone(),
                ..Interface::default()
            };
            add_clsact(&self.pins, &interface)?;
            let there = ours(&interface)?;
            let what = match there {
                Some(program) if Some(program) == wanted => continue,
                Some(_) => "replaced on",
                None => "attached to",
            };
            changes.push(format!("{} {what} {}", Hook::Port.program(), port.name));
            let mut pinned = self.pins.open_program(Hook::Port)?;
            let place = match there {
                Some(_) => Place::Of(PORT_HANDLE.into()),
                None => Place::Before(PORT_HANDLE),
            };
            attach(&mut pinned, &interface, Hook::Port, place)?;
        }
        for interface in all()? {
            let is_port = ports.iter().any(|port| port.number == interface.index);
            if !is_port && detach(&self.pins, &interface, &self.known)? {
                changes.push(format!("program taken off {}", interface.name));
            }
        }
        // Entries of another release can't be read; the controller says again what is to be copied.
        self.pins.remove_others()?;
        Ok(changes)
    }

    /// Whether what is pinned does what was loaded, over the same maps. If so it stays.
    fn is_pinned(&mut self) -> Result<bool, AttachError> {
        let Some(pinned) = self.pins.program(Hook::Port) else {
            return Ok(false);
        };
        let loaded = self.program.classifier()?.info();
        Ok(loaded.is_ok_and(|loaded| loaded.tag() == pinned.tag()) && self.pins.are_of(&pinned))
    }
}

/// Takes the program off all interfaces of this network namespace. Which had it.
///
/// # Errors
/// The kernel refuses.
pub fn detach_all(pins: &Pins) -> Result<Vec<String>, AttachError> {
    let known = pinned(pins);
    let mut names = Vec::new();
    for interface in all()? {
        if detach(pins, &interface, &known)? {
            names.push(interface.name);
        }
    }
    Ok(names)
}

/// Interfaces of this network namespace at which the program of these pins is.
///
/// # Errors
/// The kernel refuses.
pub fn attached(pins: &Pins) -> Result<Vec<Interface>, AttachError> {
    let known = pinned(pins);
    let mut found = Vec::new();
    for interface in all()? {
        if ours(&interface)?.is_some_and(|program| known.contains(&program)) {
            found.push(interface);
        }
    }
    Ok(found)
}

/// A program of these pins is taken off; one of another bridge's agent stays, and with it what it needs.
fn detach(pins: &Pins, interface: &Interface, known: &HashSet<u32>) -> Result<bool, AttachError> {
    let is_known = ours(interface)?.is_some_and(|program| known.contains(&program));
    let hooks: &[Hook] = if is_known { &[Hook::Port] } else { &[] };
    take_off(pins, interface, hooks)
}

fn ours(interface: &Interface) -> Result<Option<u32>, AttachError> {
    let found = tc::ours(interface.index, Hook::Port).map_err(|error| failed(interface, &error))?;
    // Without a number it is of a kernel that does not say; none of ours is older than these.
    Ok(found
        .first()
        .map(|filter| filter.program.unwrap_or_default()))
}

fn all() -> Result<Vec<Interface>, AttachError> {
    interfaces().map_err(|error| AttachError::Interface {
        name: String::from("all"),
        cause: cause(&error),
    })
}

/// Numbers of the programs that are pinned, of whatever layout.
fn pinned(pins: &Pins) -> HashSet<u32> {
    let others = pins.others();
    let others = others.iter().filter_map(|other| other.program(Hook::Port));
    let all = others.chain(pins.program(Hook::Port));
    all.map(|program| program.id()).collect()
}
