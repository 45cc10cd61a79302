//! The forwarder's side of the management protocol.
use crate::config::Config;
use crate::face::FaceId;
use crate::forwarder::Forwarder;
use crate::output::CreateFaceError;
use std::time::Duration;

/// State of management.
#[derive(Debug)]
pub(crate) struct Manager {}

impl Manager {
    pub(crate) fn new(_config: &Config) -> Self {
        Manager {}
    }
}

impl Forwarder {
    pub(crate) fn add_management_routes(&mut self) {}
    pub(crate) fn announce_face(&mut self, _face: FaceId, _kind: super::FaceEventKind) {}
    pub(crate) fn run_management(&mut self) {
        self.internal.clear();
    }

    /// Answers [`Output::CreateFace`](crate::Output::CreateFace): the face that was made, after
    /// [`Forwarder::add_face`], or why not.
    pub fn face_created(
        &mut self,
        now: Duration,
        request_id: u64,
        result: Result<FaceId, CreateFaceError>,
    ) {
        self.set_now(now);
        let _ = (request_id, result);
    }

    /// Says which listeners the driver has, as FaceUris, for the channel list.
    pub fn set_channels(&mut self, _uris: Vec<String>) {}
}
