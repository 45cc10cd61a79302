//! Anything as a request by HTTP.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use ndn_door::fuzzing::Door;

unsafe extern "C" {
    fn atexit(act: extern "C" fn()) -> i32;
}

static FOLDER: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("ndn-door-fuzz-{}", std::process::id())));

static DOOR: LazyLock<Door> = LazyLock::new(|| {
    let door = Door::new(&FOLDER);
    // SAFETY: what is called takes nothing, returns and does not unwind.
    unsafe { atexit(remove) };
    door
});

/// The fuzzer ends without dropping anything.
extern "C" fn remove() {
    let _ = std::fs::remove_dir_all(&*FOLDER);
}

fuzz_target!(|bytes: &[u8]| DOOR.request(bytes));
