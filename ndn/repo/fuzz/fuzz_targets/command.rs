//! Commands and responses of the repo protocol.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use ndn_packet::{Interest, Verifier};
use ndn_repo::protocol::{Command, Parameters, Response};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(parameters) = Parameters::decode(bytes) {
        assert_eq!(Parameters::decode(&parameters.encode()), Ok(parameters));
    }
    if let Ok(response) = Response::decode(bytes) {
        assert_eq!(Response::decode(&response.encode()), Ok(response));
    }
    if let Ok(interest) = Interest::parse(Bytes::copy_from_slice(bytes))
        && let Some(Ok(command)) = Command::read(&interest.name().prefix(1).to_name(), &interest)
    {
        let _ = command.is_signed_by(&Verifier::DigestSha256);
        let _ = (command.time_ms(), command.nonce());
    }
});
