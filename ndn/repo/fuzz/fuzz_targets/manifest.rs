//! Anything as the manifest of a file, and as its entry in the index.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ndn_repo::fuzzing::manifest(bytes));
