//! The store: Interests for files in, Data out, with Interests for blocks in between.
//!
//! ```text
//!   Interest ──▶ known? ──▶ Data
//!                  │ no: what is lacking is asked for once, the Interest waits under it
//!                  ├─ of the NameNode: by its thread ──┐
//!                  └─ block segment: by the network ───┴─▶ it came: known? again
//! ```

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use ndn_packet::{Data, Interest, NackReason, Name, NameRef, NetKind, NetPacket, PitToken};
use ndn_repo::{Cache, RateLimit};
use trunkline_native::Verify;

use crate::batches::{BatchId, Gathered};
use crate::cluster::{Cluster, Need, Step, StoreOptions};
use crate::file::File;
use crate::namenode::StoreError;
use crate::pending::{PendingInterest, PendingInterests};
use crate::questions::{Questions, Topic, Unanswered};

/// When a block segment that did not come is asked for again, if somebody still wants it.
const AGAIN: Duration = Duration::from_millis(400);
/// How long an Interest waits, unless it says less.
const WAIT: Duration = Duration::from_secs(4);
/// How long a NameNode that did not answer is left alone.
const QUIET: Duration = Duration::from_secs(1);
/// Bytes of names of block segments that are asked for.
const ASKED_BYTES: usize = 4 << 20;

/// Files of a cluster under a prefix.
pub struct Store {
    cluster: Cluster,
    questions: Questions,
    now: Duration,
    waiting: PendingInterests,
    /// Block segments asked for, and when.
    asked: Cache<Name, Duration>,
    /// Until when the NameNode is not asked, because it did not answer.
    quiet_until: Option<Duration>,
    /// Of lines about block segments that do not verify.
    unverified: RateLimit,
}

impl Store {
    /// A store that publishes as `options` say what is asked by `questions`.
    pub fn new(options: StoreOptions, questions: Questions) -> Self {
        Self {
            cluster: Cluster::new(options),
            questions,
            now: Duration::ZERO,
            waiting: PendingInterests::default(),
            asked: Cache::new(ASKED_BYTES),
            quiet_until: None,
            unverified: RateLimit::default(),
        }
    }

    /// Whether names under this one are the store's.
    pub fn has(&self, name: NameRef<'_>) -> bool {
        self.cluster.has(name)
    }

    /// Takes an Interest under the prefix.
    pub fn on_interest(
        &mut self,
        now: Duration,
        interest: Interest,
        token: Option<PitToken>,
        out: &mut Vec<NetPacket>,
    ) {
        self.now = now;
        self.collect(out);
        if let Some(topic) = self.cluster.doubtful(&interest, now) {
            // Nobody waits for that; where it can't be asked now, the next Interest is as good.
            let _ = self.ask_namenode(&topic);
        }
        let until = now + interest.lifetime().map_or(WAIT, |asked| asked.min(WAIT));
        let waiting = PendingInterest {
            interest,
            token,
            until,
        };
        self.proceed(waiting, out);
    }

    /// Takes Data, `marked` where its way is congested; false where the store has not asked for it.
    pub fn on_data(
        &mut self,
        now: Duration,
        data: &Data,
        marked: bool,
        out: &mut Vec<NetPacket>,
    ) -> bool {
        self.now = now;
        let name = data.name_owned();
        if self.asked.remove(&name).is_none() {
            return false;
        }
        // What does not verify is as if it had not come: it is asked for again as long as somebody wants it.
        if !Verify::Checksums.accepts(data) {
            if let Some(left_out) = self.unverified.allows(now) {
                tracing::warn!(%name, left_out, "block segment does not verify");
            }
            return true;
        }
        let batches = self.cluster.keep(&name, data.content_slice(), now);
        let from = out.len();
        for (id, gathered) in batches {
            if let Gathered::Unfit(name) = gathered {
                self.cluster.drop_unfit(&name);
            }
            self.came(&Need::Batch(id), out);
        }
        self.came(&Need::Segment(name), out);
        for packet in &mut out[from..] {
            // Who reads files is to be told that blocks come slowly.
            if marked && matches!(packet.packet, NetKind::Data(_)) {
                packet.congestion_mark = Some(1);
            }
        }
        true
    }

    /// A block segment can't be had now; false where the store has not asked for it.
    pub fn on_nack(
        &mut self,
        now: Duration,
        interest: &Interest,
        reason: NackReason,
        out: &mut Vec<NetPacket>,
    ) -> bool {
        self.now = now;
        let name = interest.name_owned();
        if self.asked.remove(&name).is_none() {
            return false;
        }
        let is_passing = reason == NackReason::Congestion;
        for id in self.cluster.refused(&name, is_passing, now) {
            for waiting in self.waiting.take(&Need::Batch(id)) {
                match is_passing {
                    true => refuse(waiting, reason, out),
                    // Those that need other block segments can still be had.
                    false => self.proceed(waiting, out),
                }
            }
        }
        for waiting in self.waiting.take(&Need::Segment(name)) {
            refuse(waiting, reason, out);
        }
        true
    }

    /// The NameNode has answered: to be called when the waker that [`Questions::to`] was given is.
    pub fn on_wake(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        self.now = now;
        self.collect(out);
    }

    fn collect(&mut self, out: &mut Vec<NetPacket>) {
        while let Some((topic, told)) = self.questions.poll() {
            match told {
                Ok(answer) => {
                    if self.quiet_until.take().is_some() {
                        tracing::info!("NameNode answers again");
                    }
                    self.cluster.learn(topic.clone(), answer, self.now);
                    self.came(&Need::Told(topic), out);
                }
                Err(unanswered) => {
                    let reason = match unanswered {
                        Unanswered::Silent(error) => {
                            self.on_silence(&error);
                            NackReason::NoRoute
                        }
                        Unanswered::Late => NackReason::Congestion,
                        Unanswered::Ended => {
                            tracing::error!(
                                "thread that asks the NameNode has panicked; known versions are still served, restart for others"
                            );
                            NackReason::NoRoute
                        }
                    };
                    for waiting in self.waiting.take(&Need::Told(topic)) {
                        refuse(waiting, reason, out);
                    }
                }
            }
        }
    }

    fn on_silence(&mut self, error: &StoreError) {
        if self.quiet_until.is_none() {
            tracing::error!(%error, "NameNode does not answer; only known versions are served");
        }
        self.quiet_until = Some(self.now + QUIET);
    }

    /// What was lacking is there: those who waited for it go on.
    fn came(&mut self, need: &Need, out: &mut Vec<NetPacket>) {
        for waiting in self.waiting.take(need) {
            self.proceed(waiting, out);
        }
    }

    fn proceed(&mut self, waiting: PendingInterest, out: &mut Vec<NetPacket>) {
        if waiting.until <= self.now {
            return;
        }
        match self.cluster.step(&waiting.interest, self.now) {
            Step::Answer(wire) => match Data::parse(wire) {
                Ok(data) => out.push(NetPacket::data(data).with_pit_token(waiting.token)),
                Err(error) => tracing::error!(%error, "answer is malformed"),
            },
            Step::Nothing => refuse(waiting, NackReason::NoRoute, out),
            Step::Lacks(needs) => self.wait(waiting, needs, out),
            Step::Unsigned(id, file, batch) => self.gather(waiting, id, (&file, batch), out),
            Step::Unfit(name) => {
                self.cluster.drop_unfit(&name);
                refuse(waiting, NackReason::NoRoute, out);
            }
        }
    }

    /// An Interest for one of these segments waits until all are here, and signed.
    fn gather(
        &mut self,
        waiting: PendingInterest,
        id: BatchId,
        batch: (&Arc<File>, Range<u64>),
        out: &mut Vec<NetPacket>,
    ) {
        if !self.waiting.has_room_for(&waiting, self.now) {
            return refuse(waiting, NackReason::Congestion, out);
        }
        match self.cluster.gather(&id, batch, self.now, waiting.until) {
            Gathered::Signed => self.proceed(waiting, out),
            Gathered::Lacks(names) => {
                for name in &names {
                    self.ask_network(name, out);
                }
                self.waiting.enter(Need::Batch(id), waiting);
            }
            Gathered::Unfit(name) => {
                self.cluster.drop_unfit(&name);
                self.proceed(waiting, out);
            }
            Gathered::NoRoom => refuse(waiting, NackReason::Congestion, out),
        }
    }

    fn wait(&mut self, waiting: PendingInterest, needs: Vec<Need>, out: &mut Vec<NetPacket>) {
        if !self.waiting.has_room_for(&waiting, self.now) {
            return refuse(waiting, NackReason::Congestion, out);
        }
        for need in &needs {
            match need {
                Need::Segment(name) => self.ask_network(name, out),
                Need::Told(topic) => {
                    if let Err(reason) = self.ask_namenode(topic) {
                        return refuse(waiting, reason, out);
                    }
                }
                // That is gathered instead.
                Need::Batch(_) => {}
            }
        }
        if let Some(first) = needs.into_iter().next() {
            self.waiting.enter(first, waiting);
        }
    }

    /// Asks for a block segment, unless it was asked for just now.
    fn ask_network(&mut self, name: &Name, out: &mut Vec<NetPacket>) {
        let is_out = |at: &Duration| *at + AGAIN > self.now;
        if self.asked.peek(name).is_some_and(is_out) {
            return;
        }
        self.asked.insert(name.clone(), self.now, name.wire_len());
        let wire = Interest::builder(name)
            .nonce(fastrand::u32(..))
            .lifetime(WAIT)
            .build();
        out.extend(Interest::parse(wire).ok().map(NetPacket::interest));
    }

    /// Asks the NameNode.
    ///
    /// # Errors
    /// It is left alone, or too much is asked.
    fn ask_namenode(&mut self, topic: &Topic) -> Result<(), NackReason> {
        if self.quiet_until.is_some_and(|until| self.now < until) {
            return Err(NackReason::NoRoute);
        }
        let cluster = &self.cluster;
        match self.questions.ask(topic, || cluster.path(topic)) {
            true => Ok(()),
            false => Err(NackReason::Congestion),
        }
    }
}

fn refuse(waiting: PendingInterest, reason: NackReason, out: &mut Vec<NetPacket>) {
    out.push(NetPacket::nack(reason, waiting.interest).with_pit_token(waiting.token));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::questions::{Question, Told};
    use std::sync::mpsc::{Receiver, SyncSender};

    /// A store whose questions a test answers.
    fn asking() -> (Store, Receiver<Question>, SyncSender<Told>) {
        let (questions, asked, tell) = Questions::to_test();
        let options = StoreOptions {
            prefix: name("/cluster"),
            path: String::new(),
            key: ndn_packet::SigningKey::DigestSha256,
            signatures: crate::Signatures::Batch,
        };
        (Store::new(options, questions), asked, tell)
    }

    fn name(text: &str) -> Name {
        text.parse().expect("a name")
    }

    fn ask(store: &mut Store, asked: &str, out: &mut Vec<NetPacket>) {
        let wire = Interest::builder(&name(asked))
            .can_be_prefix(true)
            .nonce(1)
            .build();
        let interest = Interest::parse(wire).expect("an Interest");
        store.on_interest(Duration::ZERO, interest, None, out);
    }

    /// Why there are no answers.
    fn reasons(out: &mut Vec<NetPacket>) -> Vec<NackReason> {
        out.drain(..)
            .map(|packet| match packet.packet {
                NetKind::Nack { reason, .. } => reason,
                _ => panic!("an answer"),
            })
            .collect()
    }

    #[test]
    fn a_question_put_too_late_is_congestion_and_no_silence() {
        let (mut store, asked, tell) = asking();
        let mut out = Vec::new();
        ask(&mut store, "/cluster/a", &mut out);
        assert!(asked.try_recv().is_ok());
        let topic = Topic::File(name("/cluster/a"));
        tell.send((topic, Err(Unanswered::Late))).expect("a store");
        store.on_wake(Duration::ZERO, &mut out);
        assert_eq!(reasons(&mut out), [NackReason::Congestion]);
        ask(&mut store, "/cluster/b", &mut out);
        assert!(asked.try_recv().is_ok(), "the NameNode is left alone");
    }

    #[test]
    fn nobody_waits_for_what_nobody_will_ever_ask_the_namenode() {
        let (mut store, asked, tell) = asking();
        let mut out = Vec::new();
        for file in ["/cluster/a", "/cluster/b"] {
            ask(&mut store, file, &mut out);
        }
        assert_eq!(out.len(), 0);
        // As where the thread that asks has come to an end.
        drop((asked, tell));
        store.on_wake(Duration::ZERO, &mut out);
        assert_eq!(reasons(&mut out), [NackReason::NoRoute; 2]);
        ask(&mut store, "/cluster/c", &mut out);
        assert_eq!(reasons(&mut out).len(), 1);
    }
}
