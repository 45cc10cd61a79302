//! Management's wishes about faces, carried out.

use std::time::Duration;

use ndn_forwarder::{CreateFace, CreateFaceError, FaceId, FacePersistency, UpdateFace};

use super::Driver;
use super::core::NodeCore;
use super::slots::{Face, FaceKind, Slot, Stream, StreamOrigin, StreamState};
use crate::config::{FaceConfig, LinkOptions};
use crate::face::link::Link;
use crate::transport::FaceType;
use crate::uri::FaceUri;

impl<C: NodeCore> Driver<C> {
    pub(super) fn create_face(&mut self, request: &CreateFace) {
        match self.try_create(request) {
            Ok(None) => {}
            Ok(Some(face)) => {
                self.core
                    .face_created(self.now, request.request_id, Ok(face));
            }
            Err(error) => self
                .core
                .face_created(self.now, request.request_id, Err(error)),
        }
    }

    /// `None` where the answer comes later, with the connection.
    fn try_create(&mut self, request: &CreateFace) -> Result<Option<FaceId>, CreateFaceError> {
        let refuse = |code, text: String| CreateFaceError {
            code,
            text,
            existing: None,
        };
        let uri = FaceUri::parse(&request.uri).map_err(|error| refuse(400, error.to_string()))?;
        let local_bind = match request.local_uri.as_deref().map(FaceUri::parse) {
            None => None,
            Some(Ok(uri)) if uri.endpoint().is_some() => {
                let address = uri.endpoint().and_then(|endpoint| endpoint.literal());
                address.map(|address| address.ip())
            }
            Some(_) => return Err(refuse(400, "the local URI is no address".to_owned())),
        };
        if let Some(existing) = self.face_toward(&uri) {
            let text = "a face to this URI exists".to_owned();
            return Err(CreateFaceError {
                code: 409,
                text,
                existing: Some(existing),
            });
        }
        let link = LinkOptions {
            mtu: request
                .mtu
                .map(|mtu| usize::try_from(mtu).unwrap_or(usize::MAX).clamp(576, 65507))
                .or(self.managed_faces.mtu),
            mark_threshold_bytes: match (
                request.congestion_marking,
                request.default_congestion_threshold,
            ) {
                (Some(false), _) => 0,
                (_, Some(bytes)) => usize::try_from(bytes).unwrap_or(usize::MAX),
                _ => self.managed_faces.mark_threshold_bytes,
            },
            ..self.managed_faces.clone()
        };
        let persistency = match request.persistency {
            FacePersistency::OnDemand => FacePersistency::Persistent,
            other => other,
        };
        let config = FaceConfig {
            link,
            persistency,
            local_bind,
            ..FaceConfig::new(uri)
        };
        if config.uri.needs_resolving() {
            return Err(not_canonical(&config.uri));
        }
        let at = match FaceType::of(&config.uri) {
            Some(FaceType::Datagram(transport)) => self
                .open_datagrams(transport, &config)
                .map_err(|error| refuse(504, error.to_string()))?,
            _ => {
                let at = self.open_stream(config, Some(request.request_id));
                self.set_local_fields(at, request.local_fields);
                // Connected at once or failed at once: the answer has been given.
                return Ok(None);
            }
        };
        match &self.slots[at] {
            Slot::Face(face) => Ok(Some(face.id)),
            _ => Ok(None),
        }
    }

    fn set_local_fields(&mut self, at: usize, on: bool) {
        if let Some(Slot::Face(Face {
            kind: FaceKind::Stream(stream),
            ..
        })) = self.slots.get_mut(at)
        {
            stream.local_fields = on;
            if let StreamState::Up(face) = &mut stream.state {
                face.link.local_fields = on;
            }
        }
    }

    /// The face that leads to this URI, opened by us or made on demand.
    fn face_toward(&self, uri: &FaceUri) -> Option<FaceId> {
        let wanted = uri.to_string();
        self.core
            .forwarder()
            .faces()
            .find(|(_, spec, ..)| spec.remote_uri == wanted)
            .map(|(id, ..)| id)
    }

    pub(super) fn update_face(&mut self, update: &UpdateFace) {
        let spec = self.core.forwarder().face(update.face);
        let local_fields = spec.is_some_and(|s| s.local_fields);
        let Some((at, face)) = self.face(update.face) else {
            return;
        };
        if let Some(persistency) = update.persistency {
            face.persistency = persistency;
        }
        let interval = update
            .base_congestion_marking_interval_ns
            .map(Duration::from_nanos);
        let threshold = update
            .default_congestion_threshold
            .map(|b| usize::try_from(b).unwrap_or(usize::MAX));
        let mark =
            |link: &mut Link| link.set_marking(update.congestion_marking, interval, threshold);
        match &mut face.kind {
            FaceKind::Stream(Stream { state, origin, .. }) => {
                if let StreamState::Up(face) = state {
                    mark(&mut face.link);
                }
                // What is connected anew is to be as it was told to be.
                if let StreamOrigin::Connected(connector) = origin {
                    let link = &mut connector.config.link;
                    link.mark_threshold_bytes = match (update.congestion_marking, threshold) {
                        (Some(false), _) => 0,
                        (_, Some(bytes)) => bytes,
                        _ => link.mark_threshold_bytes,
                    };
                }
            }
            FaceKind::Udp(udp) => {
                mark(&mut udp.face.link);
                if let Some(mtu) = update.mtu {
                    udp.face.set_mtu(usize::try_from(mtu).unwrap_or(usize::MAX));
                }
            }
            FaceKind::App(_) => {}
        }
        self.set_local_fields(at, local_fields);
    }
}

fn not_canonical(uri: &FaceUri) -> CreateFaceError {
    CreateFaceError {
        code: 400,
        text: format!("{uri} names a host; give its address"),
        existing: None,
    }
}
