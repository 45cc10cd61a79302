//! What comes as a request for a content key at a DataNode, and as its answer at a reader.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use trunkline_native::{Asking, KeyId, KeyRequest, MAX_IDENTIFIER, Secret};

static ASKING: LazyLock<Asking> = LazyLock::new(|| {
    let version = "/hadoop/blocks/BP-1/7/v=1001".parse().expect("a name");
    Asking::new(&version, b"identifier", b"password").expect("a request")
});

fuzz_target!(|bytes: &[u8]| {
    if let Some(request) = KeyRequest::decode(bytes.to_vec().into()) {
        assert_eq!(request.encode(), bytes);
        assert!(request.identifier.len() <= MAX_IDENTIFIER);
        // Nobody without the password makes a request that is believed.
        let password = Secret::new(b"password").expect("a secret");
        assert!(!request.is_proven(ASKING.name().as_ref(), &password));
    }
    assert!(ASKING.open(bytes).is_none());
    if let Some(id) = KeyId::from_bytes(bytes) {
        assert_eq!(id.to_bytes(), bytes);
    }
});
