//! Anything as what a NameNode tells of a folder.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| trunkline_store::fuzzing::folder(bytes));
