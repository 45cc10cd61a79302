//! Anything as the Range header of a request for a file.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ndn_door::fuzzing::range(bytes));
