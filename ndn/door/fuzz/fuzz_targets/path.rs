//! Anything as the path and the parameters of a request.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ndn_door::fuzzing::path(bytes));
