//! What the commands on faces do.

use super::commands::{CommandResult, chosen_face, refusal};
use crate::FacePersistency;
use crate::face::{Face, FaceId, FaceScope};
use crate::forwarder::Forwarder;
use crate::manager::{MAX_CREATING, PendingCreate};
use crate::mgmt::face_status::flags;
use crate::mgmt::parameters::{FLAG_LOCAL_FIELDS, persistency, persistency_number};
use crate::mgmt::{
    ControlParameters, ControlResponse, FLAG_CONGESTION_MARKING, FLAG_LP_RELIABILITY,
};
use crate::output::{CreateFace, CreateFaceError, Output};
use crate::request::Request;
use crate::shard::Control;

const NO_RELIABILITY: &str = "this forwarder has no link reliability (LpReliability)";

impl Forwarder {
    pub(super) fn create_face(
        &mut self,
        request: &Request,
        p: ControlParameters,
    ) -> Option<ControlResponse> {
        let Some(uri) = p.uri.clone() else {
            return Some(ControlResponse::error(400, "Uri is required"));
        };
        let ends = p
            .persistency
            .map_or(Some(FacePersistency::Persistent), persistency);
        let Some(persistency) = ends.filter(|_| !p.has_flags_without_mask()) else {
            return Some(ControlResponse::error(
                400,
                "failed in validating parameters",
            ));
        };
        if p.flag(FLAG_LP_RELIABILITY) == Some(true) {
            return Some(ControlResponse::error(406, NO_RELIABILITY));
        }
        if self.manager.creating.len() >= MAX_CREATING {
            return Some(ControlResponse::error(
                503,
                "too many faces are being made; try again",
            ));
        }
        let request_id = self.manager.next_request;
        self.manager.next_request += 1;
        let local_fields = p.flag(FLAG_LOCAL_FIELDS).unwrap_or(false);
        let creating = PendingCreate {
            name: request.name.compact(),
            token: request.token,
            local_fields,
        };
        self.manager.creating.insert(request_id, creating);
        self.state.outputs.push(Output::CreateFace(CreateFace {
            request_id,
            uri,
            persistency,
            mtu: p.mtu,
            local_fields,
            congestion_marking: p.flag(FLAG_CONGESTION_MARKING),
            base_congestion_marking_interval_ns: p.base_congestion_marking_interval_ns,
            default_congestion_threshold: p.default_congestion_threshold,
            local_uri: p.local_uri,
        }));
        None
    }

    pub(super) fn finish_creating(
        &mut self,
        request_id: u64,
        result: Result<FaceId, CreateFaceError>,
    ) {
        let Some(creating) = self.manager.creating.remove(&request_id) else {
            return;
        };
        let response = match result {
            Ok(id) => {
                let slot = self.state.faces.slot(id);
                if let Some(face) = slot
                    .and_then(|slot| self.state.faces.get_mut(slot))
                    .filter(|f| f.is_local())
                {
                    face.spec.local_fields |= creating.local_fields;
                    let spec = face.spec.clone();
                    self.tell_others(|| Control::FaceManaged(id, spec.clone()));
                }
                match self.state.faces.by_id(id) {
                    Some(face) => ControlResponse::ok(with_uris(face)),
                    None => ControlResponse::error(500, "the face is gone already"),
                }
            }
            Err(error) => {
                let existing = error.existing.and_then(|id| self.state.faces.by_id(id));
                let body = existing.map(with_uris).unwrap_or_default();
                ControlResponse {
                    code: u64::from(error.code),
                    text: error.text,
                    body,
                }
            }
        };
        self.respond_to(&creating.name, creating.token, response);
    }

    pub(super) fn update_face(&mut self, request: &Request, p: ControlParameters) -> CommandResult {
        if p.has_flags_without_mask() {
            return Err(refusal(400, "Flags must be accompanied by Mask"));
        }
        let id = chosen_face(request, &p);
        let slot = self.state.faces.slot(id).filter(|_| id >= FaceId::FIRST);
        let face = slot.and_then(|slot| self.state.faces.get_mut(slot));
        let face = face.ok_or_else(|| refusal(404, "Specified face does not exist"))?;
        let mut wrong = ControlParameters::default();
        if p.flag(FLAG_LOCAL_FIELDS) == Some(true) && face.spec.scope != FaceScope::Local {
            (wrong.flags, wrong.mask) = (Some(FLAG_LOCAL_FIELDS), Some(FLAG_LOCAL_FIELDS));
        }
        if p.flag(FLAG_LP_RELIABILITY) == Some(true) {
            let set = |bits: Option<u64>| Some(bits.unwrap_or(0) | FLAG_LP_RELIABILITY);
            (wrong.flags, wrong.mask) = (set(wrong.flags), set(wrong.mask));
        }
        if p.persistency.is_some_and(|n| persistency(n).is_none()) {
            wrong.persistency = p.persistency;
        }
        if wrong != ControlParameters::default() {
            let text = "Invalid properties specified".into();
            return Err(Box::new(ControlResponse {
                code: 409,
                text,
                body: wrong,
            }));
        }
        let update = p.update(id);
        let spec = &mut face.spec;
        spec.local_fields = p.flag(FLAG_LOCAL_FIELDS).unwrap_or(spec.local_fields);
        spec.persistency = update.persistency.unwrap_or(spec.persistency);
        spec.mtu = update.mtu.or(spec.mtu);
        spec.congestion_marking = update.congestion_marking.unwrap_or(spec.congestion_marking);
        spec.base_congestion_marking_interval_ns = update
            .base_congestion_marking_interval_ns
            .or(spec.base_congestion_marking_interval_ns);
        spec.default_congestion_threshold = update
            .default_congestion_threshold
            .or(spec.default_congestion_threshold);
        let (body, spec) = (properties(face), face.spec.clone());
        if let Some(slot) = slot {
            self.state.meet(slot);
        }
        self.tell_others(|| Control::FaceManaged(id, spec.clone()));
        self.state.outputs.push(Output::UpdateFace(update));
        Ok(body)
    }

    pub(super) fn destroy_face(&mut self, p: ControlParameters) -> CommandResult {
        let id = p.face_id.filter(|id| *id != 0).map(FaceId);
        let id = id.ok_or_else(|| refusal(400, "FaceId is required"))?;
        if id < FaceId::FIRST {
            return Err(refusal(400, "the face is reserved"));
        }
        if self.state.faces.slot(id).is_some() {
            self.state.outputs.push(Output::DestroyFace { face: id });
        }
        Ok(ControlParameters {
            face_id: Some(id.0),
            ..Default::default()
        })
    }
}

fn properties(face: &Face) -> ControlParameters {
    ControlParameters {
        face_id: Some(face.id.0),
        persistency: Some(persistency_number(face.spec.persistency)),
        mtu: face.spec.mtu,
        base_congestion_marking_interval_ns: face.spec.base_congestion_marking_interval_ns,
        default_congestion_threshold: face.spec.default_congestion_threshold,
        flags: Some(flags(&face.spec)),
        ..Default::default()
    }
}

fn with_uris(face: &Face) -> ControlParameters {
    ControlParameters {
        uri: Some(face.spec.remote_uri.clone()),
        local_uri: Some(face.spec.local_uri.clone()),
        ..properties(face)
    }
}
