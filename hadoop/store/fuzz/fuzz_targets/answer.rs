//! Anything as an answer of a NameNode by WebHDFS.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| trunkline_store::fuzzing::answer(bytes));
