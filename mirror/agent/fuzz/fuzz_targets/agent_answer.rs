//! Anything as what the controller answers an agent of a DataNode.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| trunkline_mirror::fuzzing::agent_answer(bytes));
