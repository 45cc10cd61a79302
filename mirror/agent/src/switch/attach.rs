//! The program at a bridge's ports: loaded over the pinned maps, and attached so that it stays when the agent does not.

use std::collections::HashSet;
use std::path::Path;

use super::bridge::BridgePort;
use super::program::{LAYOUT, MAPS, SwitchProgram};
use crate::attach::{AttachError, Place, add_clsact, attach, cause, failed, lock, take_off};
use crate::interfaces::{Interface, interfaces, is_there};
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

/// What became of a look after the program.
#[derive(Debug, Default)]
pub struct Ensured {
    /// What was changed, for people, and at which port; none, where the interface is no port any more.
    pub changes: Vec<(Option<u32>, String)>,
    /// Ports that had it.
    pub right: Vec<u32>,
    /// Ports that can't have it, and why.
    pub failed: Vec<(u32, AttachError)>,
    /// Why interfaces that are no port have it still.
    pub left: Vec<AttachError>,
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
    /// interfaces that are no port any more: of the ports those that are `due`, of others those that `may_have` it. One
    /// that does not take it keeps it from no other.
    ///
    /// # Errors
    /// The pins can't be used, or the kernel does not say what interfaces there are.
    pub fn ensure(
        &mut self,
        ports: &[BridgePort],
        due: impl Fn(&BridgePort) -> bool,
        may_have: impl Fn(u32) -> bool,
    ) -> Result<Ensured, AttachError> {
        let mut done = Ensured::default();
        if !self.is_pinned()? {
            self.pins
                .set_program(Hook::Port, self.program.classifier()?)?;
            self.known
                .extend(self.pins.program(Hook::Port).map(|program| program.id()));
        }
        let wanted = self.pins.program(Hook::Port).map(|program| program.id());
        for port in ports.iter().filter(|port| due(port)) {
            match self.ensure_at(port, wanted) {
                Ok(None) => done.right.push(port.number),
                Ok(Some(change)) => done.changes.push((Some(port.number), change)),
                Err(error @ AttachError::Interface { .. }) => {
                    // One that is gone meanwhile is no port any more.
                    if is_there(port.number) {
                        done.failed.push((port.number, error));
                    }
                }
                Err(error) => return Err(error),
            }
        }
        for interface in all()? {
            let is_port = ports.iter().any(|port| port.number == interface.index);
            if is_port || !may_have(interface.index) {
                continue;
            }
            match detach(&self.pins, &interface, &self.known) {
                Ok(false) => {}
                Ok(true) => {
                    let change = format!("program taken off {}", interface.name);
                    done.changes.push((None, change));
                }
                Err(error) if is_there(interface.index) => done.left.push(error),
                Err(_) => {}
            }
        }
        // Entries of another release can't be read; the controller says again what is to be copied. Its program is known
        // by its pin, for as long as it may be somewhere.
        if done.failed.is_empty() && done.left.is_empty() && ports.iter().all(due) {
            self.pins.remove_others()?;
        }
        Ok(done)
    }

    /// The same at one port. What it changed, for people.
    fn ensure_at(
        &self,
        port: &BridgePort,
        wanted: Option<u32>,
    ) -> Result<Option<String>, AttachError> {
        let interface = Interface {
            index: port.number,
            name: port.name.clone(),
            ..Interface::default()
        };
        let (what, place) = match ours(&interface)? {
            Some(program) if Some(program) == wanted => return Ok(None),
            Some(_) => ("replaced on", Place::Of(PORT_HANDLE.into())),
            None => ("attached to", Place::Before(PORT_HANDLE)),
        };
        add_clsact(&self.pins, &interface)?;
        let mut pinned = self.pins.open_program(Hook::Port)?;
        attach(&mut pinned, &interface, Hook::Port, place)?;
        let program = Hook::Port.program();
        Ok(Some(format!("{program} {what} {}", port.name)))
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
        match detach(pins, &interface, &known) {
            Ok(true) => names.push(interface.name),
            Ok(false) => {}
            Err(error) if is_there(interface.index) => return Err(error),
            Err(_) => {}
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

/// All interfaces of this network namespace.
///
/// # Errors
/// The kernel does not say.
pub fn all() -> Result<Vec<Interface>, AttachError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::process::Command;

    fn run(tool: &str, words: &str) {
        let done = Command::new(tool).args(words.split(' ')).status();
        assert!(done.expect("it runs").success(), "{tool} {words}");
    }

    /// Namespaces of this thread's own, for network and mounts, with a BPF filesystem in a folder.
    fn alone(folder: &Path) -> bool {
        let path = CString::new(folder.as_os_str().as_encoded_bytes()).expect("a path");
        let (none, bpf) = (std::ptr::null(), c"bpf".as_ptr());
        let private = libc::MS_PRIVATE | libc::MS_REC;
        // SAFETY: plain system calls; the texts live through them.
        let done = unsafe {
            libc::unshare(libc::CLONE_NEWNET | libc::CLONE_NEWNS) == 0
                && libc::mount(none, c"/".as_ptr(), none, private, none.cast()) == 0
                && libc::mount(bpf, path.as_ptr(), bpf, 0, none.cast()) == 0
        };
        if !done || SwitchProgram::object().is_none() {
            println!("skipped: run as root, on a machine with clang and libbpf's headers");
        }
        done && SwitchProgram::object().is_some()
    }

    fn port(number: u32, name: &str) -> BridgePort {
        BridgePort {
            number,
            name: name.into(),
            mac: [2, 0, 0, 0, 0, 1],
            up: true,
        }
    }

    #[test]
    fn ports_that_vanish_or_do_not_take_it_keep_it_from_no_other() {
        // It goes when the thread's mounts have.
        let folder = tempfile::tempdir().expect("a folder");
        let test = || {
            if !alone(folder.path()) {
                return;
            }
            for words in [
                "link add dev p1 index 101 type veth peer name h1",
                "link add dev p2 index 102 type veth peer name h2",
            ] {
                run("ip", words);
            }
            run("tc", "qdisc add dev p1 ingress");
            let pins = pins(&folder.path().join("switch"));
            let mut attachment = Attachment::load(pins.clone()).expect("loaded");
            let ports = [port(100, "p0"), port(101, "p1"), port(102, "p2")];
            let ensured = attachment.ensure(&ports, |_| true, |_| true);
            let done = ensured.expect("the pins can be used");
            let changed: Vec<_> = done.changes.iter().map(|(port, _)| *port).collect();
            assert_eq!(changed, [Some(102)]);
            let failed: Vec<_> = done.failed.iter().map(|(port, _)| *port).collect();
            assert_eq!(failed, [101], "who is gone is no port that failed");
            assert!(
                done.failed[0]
                    .1
                    .to_string()
                    .contains("tc qdisc del dev p1 ingress")
            );
            // Those that are not due are left as they are.
            run("tc", "qdisc del dev p1 ingress");
            let mut ensure =
                |due: bool| attachment.ensure(&ports, |_| due, |_| true).expect("done");
            assert_eq!(ensure(false).changes, []);
            assert_eq!(ensure(true).changes.len(), 1);
            assert_eq!(detach_all(&pins).expect("detached"), ["p1", "p2"]);
        };
        std::thread::scope(|scope| scope.spawn(test).join().expect("the test"));
    }
}
