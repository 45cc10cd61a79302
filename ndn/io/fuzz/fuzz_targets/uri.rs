//! Any text as the URI of a face.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ndn_io::fuzzing::uri(bytes));
