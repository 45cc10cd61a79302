//! Any bytes by a stream, however they are cut.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ndn_io::fuzzing::stream(bytes));
