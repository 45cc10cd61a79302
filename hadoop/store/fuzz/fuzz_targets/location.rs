//! Any text as the folder of a cluster that is published, and as a name of what is in it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| trunkline_store::fuzzing::location(bytes));
