//! Anything as the payload of a record of a segment log.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ndn_repo::fuzzing::records(bytes));
