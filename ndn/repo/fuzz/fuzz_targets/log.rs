//! Anything as a segment log, behind records that are sound.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ndn_repo::fuzzing::log(bytes));
