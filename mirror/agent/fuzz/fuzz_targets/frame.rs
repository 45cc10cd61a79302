//! Any frame that a port of a bridge hears.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| trunkline_mirror::fuzzing::frame(bytes));
