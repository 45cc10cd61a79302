//! The datasets: made when somebody asks, kept for a while so that all segments are of one version.

use super::commands::refusal;
use crate::forwarder::Forwarder;
use crate::manager::FRESHNESS;
use crate::mgmt::{
    ChannelStatus, ControlResponse, CsInfo, Dataset, FaceQueryFilter, FaceStatus, FibEntry,
    GeneralStatus, MemoryPart, NextHopRecord, RibEntry, Route, StrategyChoice,
};
use crate::request::Request;
use crate::shard::{Figures, Task};
use crate::strategy::StrategyKind;
use bytes::{Bytes, BytesMut};
use ndn_packet::{Data, Name, PitToken, SigningKey, content_type};

impl Forwarder {
    pub(super) fn serve_dataset(&mut self, request: &Request) {
        let name = &request.name;
        let last = name.last();
        if let Some(segment) = last.and_then(|c| c.as_segment()) {
            return self.serve_segment(&name.parent().compact(), segment, request.token);
        }
        if last.is_some_and(|c| c.as_version().is_some()) {
            return self.serve_segment(&name.compact(), 0, request.token);
        }
        if self.state.place.is_some() && tells_figures(request) {
            // Where too many are on their way nobody answers: who asks asks again.
            let figures = Box::new(self.figures());
            self.run_errand(request, Task::Figures(figures));
            return;
        }
        let figures = self.figures();
        self.serve_figures(request, &figures);
    }

    /// Makes a dataset with these figures, and answers with its first segment.
    pub(crate) fn serve_figures(&mut self, request: &Request, figures: &Figures) {
        let name = &request.name;
        let content = match self.make_dataset(request, figures) {
            Ok(content) => content,
            Err(error) => {
                let wire = Data::builder(name)
                    .content_type(content_type::NACK)
                    .freshness(FRESHNESS)
                    .content(&error.encode())
                    .sign(&SigningKey::DigestSha256);
                return self.answer(wire, request.token);
            }
        };
        let store = &mut self.manager.datasets;
        store.last += 1;
        let version = store.last;
        let version = self.unix_ms(self.state.now).max(version);
        self.manager.datasets.last = version;
        let name = name.append_version(version);
        self.manager
            .datasets
            .push(self.state.now, name.clone(), content);
        self.serve_segment(&name, 0, request.token);
    }

    fn serve_segment(&mut self, version: &Name, segment: u64, token: Option<PitToken>) {
        if let Some(wire) = self
            .manager
            .datasets
            .segment(self.state.now, version, segment)
        {
            self.answer(wire, token);
        }
    }

    fn make_dataset(
        &self,
        request: &Request,
        figures: &Figures,
    ) -> Result<Bytes, Box<ControlResponse>> {
        let mut buf = BytesMut::new();
        match (request.module.as_str(), request.verb.as_str()) {
            ("faces", "list") => self
                .face_statuses(figures)
                .for_each(|face| face.put(&mut buf)),
            ("faces", "query") => {
                let filter = request
                    .name
                    .get(4)
                    .and_then(|c| FaceQueryFilter::decode(c.value).ok());
                let filter = filter.ok_or_else(|| refusal(400, "Malformed filter"))?;
                self.face_statuses(figures)
                    .filter(|face| filter.matches(face))
                    .for_each(|face| face.put(&mut buf));
            }
            ("faces", _) => {
                for uri in &self.manager.channels {
                    ChannelStatus {
                        local_uri: uri.clone(),
                    }
                    .put(&mut buf);
                }
            }
            ("fib", _) => self.put_fib(&mut buf),
            ("rib", _) => self.put_rib(&mut buf),
            ("strategy-choice", _) => self.put_strategies(&mut buf),
            ("cs", _) => {
                let status = &figures.status;
                let info = CsInfo {
                    capacity: status.cs_capacity_bytes as u64,
                    flags: self.cs_flags(),
                    entries: status.cs_entries as u64,
                    hits: status.cs_hits,
                    misses: status.cs_misses,
                    bytes: Some(status.cs_bytes as u64),
                };
                info.put(&mut buf);
            }
            _ => self.general_status(figures).put(&mut buf),
        }
        Ok(buf.freeze())
    }

    fn face_statuses(&self, figures: &Figures) -> impl Iterator<Item = FaceStatus> {
        self.state.faces.iter().map(|(_, face)| {
            let counters = figures.faces.get(&face.id).unwrap_or(&face.counters);
            FaceStatus::new(face.id, &face.spec, counters)
        })
    }

    fn put_fib(&self, buf: &mut BytesMut) {
        for (prefix, hops) in self.state.fib.iter() {
            let hop = |h: &crate::table::fib::NextHop| {
                Some(NextHopRecord {
                    face_id: self.state.faces.get(h.face)?.id.0,
                    cost: u64::from(h.cost),
                })
            };
            FibEntry {
                prefix: prefix.to_name(),
                next_hops: hops.iter().filter_map(hop).collect(),
            }
            .put(buf);
        }
    }

    fn put_rib(&self, buf: &mut BytesMut) {
        for (prefix, routes) in self.rib.iter() {
            let route = |r: &crate::rib::Route| {
                Some(Route {
                    face_id: self.state.faces.get(r.face)?.id.0,
                    origin: r.origin,
                    cost: r.cost,
                    flags: r.flags,
                    expires_ms: r
                        .expiry
                        .map(|at| at.saturating_sub(self.state.now) / 1_000_000),
                })
            };
            RibEntry {
                prefix: prefix.clone(),
                routes: routes.iter().filter_map(route).collect(),
            }
            .put(buf);
        }
    }

    fn put_strategies(&self, buf: &mut BytesMut) {
        let default = StrategyChoice {
            prefix: Name::new(),
            strategy: StrategyKind::from_index(self.strategy_choices.default).name(),
        };
        default.put(buf);
        for (prefix, index) in self.strategy_choices.iter() {
            StrategyChoice {
                prefix: prefix.to_name(),
                strategy: StrategyKind::from_index(index).name(),
            }
            .put(buf);
        }
    }

    fn general_status(&self, figures: &Figures) -> GeneralStatus {
        let status = &figures.status;
        GeneralStatus {
            version: self.config.version.clone(),
            start_ms: self.unix_ms(self.manager.started.unwrap_or(self.state.now)),
            now_ms: self.unix_ms(self.state.now),
            name_tree_entries: 0,
            fib_entries: status.fib_entries as u64,
            pit_entries: status.pit_entries as u64,
            measurement_entries: status.learned_prefixes as u64,
            cs_entries: status.cs_entries as u64,
            packets: (&status.packets).into(),
            satisfied_interests: status.satisfied_interests,
            unsatisfied_interests: status.unsatisfied_interests,
            pit_bytes: status.pit_bytes as u64,
            floods: status.floods,
            queued_bytes: status.queues.bytes as u64,
            queue_capacity_bytes: status.queues.capacity_bytes as u64,
            dropped_queues_full: status.queues.refused,
            memory: self
                .memory_with(figures.tables)
                .map(|(name, part)| MemoryPart {
                    name: name.to_owned(),
                    bytes: part.bytes as u64,
                    capacity_bytes: part.capacity_bytes as u64,
                })
                .collect(),
        }
    }
}

/// Whether a dataset has figures of which each worker knows its part.
fn tells_figures(request: &Request) -> bool {
    matches!(
        (request.module.as_str(), request.verb.as_str()),
        ("faces", "list" | "query") | ("cs", _) | ("status", _)
    )
}
