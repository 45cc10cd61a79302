//! Anything as what a NameNode tells of a file and its blocks.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| trunkline_store::fuzzing::file(bytes));
