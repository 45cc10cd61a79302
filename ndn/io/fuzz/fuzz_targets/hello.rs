//! Any idle packet as what another face tells of itself.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ndn_io::fuzzing::hello(bytes));
