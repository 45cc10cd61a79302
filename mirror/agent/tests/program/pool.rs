//! Programs that are loaded, each lent to one test after another with its maps as new: an emulated kernel's verifier takes
//! a quarter of a minute for them.

use std::{
    ops::{Deref, DerefMut},
    sync::Mutex,
    thread,
};

use aya::{
    Pod,
    maps::{Array, HashMap, Map, MapData, PerCpuArray, PerCpuValues},
    util::nr_cpus,
};
use trunkline_mirror::{Program, layout::Config};

static FREE: Mutex<Vec<Program>> = Mutex::new(Vec::new());

/// A program that goes back when the test ends, however it does.
pub struct Lent(Option<Program>);

/// One that nobody has; loaded where there is none.
pub fn lend() -> Lent {
    let free = FREE.lock().expect("programs").pop();
    Lent(Some(free.unwrap_or_else(|| {
        Program::load().expect("the kernel takes the program")
    })))
}

impl Deref for Lent {
    type Target = Program;

    fn deref(&self) -> &Program {
        self.0.as_ref().expect("lent")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Program {
        self.0.as_mut().expect("lent")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(mut program) = self.0.take() else {
            return;
        };
        // One that can't be made as new is not lent again.
        if renew(&mut program).is_some() {
            FREE.lock().expect("programs").push(program);
        }
    }
}

fn renew(program: &mut Program) -> Option<()> {
    empty(program.snd_flows().ok()?)?;
    empty(program.rcv_flows().ok()?)?;
    empty(program.heads().ok()?)?;
    empty(program.starts().ok()?)?;
    let used = program.ingress().ok()?.info().ok()?.map_ids().ok()??;
    let mut zeroed = 0;
    for id in used {
        let map = MapData::from_id(id).ok()?;
        let info = map.info().ok()?;
        match info.name_as_str()? {
            "mr_looked" => {
                let mut looked: Array<_, u32> = Map::Array(map).try_into().ok()?;
                for at in 0..looked.len() {
                    looked.set(at, 0, 0).ok()?;
                }
                zeroed += 1;
            }
            "mr_totals" | "mr_fallbacks" => {
                let mut sums: PerCpuArray<_, u64> = Map::PerCpuArray(map).try_into().ok()?;
                let cpus = nr_cpus().ok()?;
                for at in 0..sums.len() {
                    let none = PerCpuValues::try_from(vec![0; cpus]).ok()?;
                    sums.set(at, none, 0).ok()?;
                }
                zeroed += 1;
            }
            _ => {}
        }
    }
    assert!(
        thread::panicking() || zeroed == 3,
        "all maps that are no flows'"
    );
    program.config().ok()?.set(0, Config::default(), 0).ok()
}

fn empty<K: Pod, V: Pod>(mut map: HashMap<&mut MapData, K, V>) -> Option<()> {
    let keys: Vec<K> = map.keys().collect::<Result<_, _>>().ok()?;
    for key in keys {
        map.remove(&key).ok()?;
    }
    Some(())
}
