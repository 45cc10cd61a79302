//! What a repository elsewhere tells of its folders.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use ndn_repo::{list_component, listed};

fuzz_target!(|bytes: &[u8]| {
    let told: Vec<_> = listed(bytes).flatten().collect();
    let mut again = BytesMut::new();
    for (component, is_folder) in &told {
        list_component(&mut again, component.as_component(), *is_folder);
    }
    assert!(listed(&again).flatten().eq(told));
});
