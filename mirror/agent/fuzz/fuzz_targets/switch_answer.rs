//! Anything as what the controller answers the agent of a bridge.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| trunkline_mirror::fuzzing::switch_answer(bytes));
