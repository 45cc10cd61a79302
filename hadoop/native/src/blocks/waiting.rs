//! Interests that wait for what Java is asked. Bounded, and apart for the two
//! lanes: whatever strangers ask of one, the other is not kept from Java.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::request::{self, About, BlockKey, Question, Wanted};

/// Interests that wait for an answer of Java.
pub(super) struct Request {
    pub wanted: Vec<Wanted>,
    /// In the loop's time.
    pub until: Duration,
    /// Invalidated meanwhile: the answer is used but not remembered.
    pub stale: bool,
}

/// What may wait in one lane.
struct Bounds {
    questions: usize,
    /// Interests in all questions, and in one.
    interests: usize,
    in_one: usize,
}

/// Of segments and what belongs to them, and of requests for content keys: each
/// of those may be as long as the token in it, and has Java make a password
/// before anything is known of its sender.
const BOUNDS: [Bounds; 2] = [
    Bounds {
        questions: 1024,
        interests: 16 * 1024,
        in_one: 1024,
    },
    Bounds {
        questions: 256,
        interests: 256,
        in_one: 256,
    },
];

#[derive(Default)]
struct Lane {
    questions: usize,
    interests: usize,
    /// What Java has not taken yet. Its questions may be over by then.
    untaken: VecDeque<String>,
}

/// How an Interest was taken in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// Java is asked for it.
    Asked,
    /// It waits with others.
    Joined,
}

/// Questions to Java, and who waits for their answers.
#[derive(Default)]
pub(super) struct Waiting {
    requests: HashMap<Question, Request>,
    lanes: [Lane; 2],
    /// The lane that Java is given something of next.
    turn: usize,
}

/// Which of the two.
fn lane(question: &Question) -> usize {
    usize::from(matches!(question.subject.about, About::Token(_)))
}

impl Waiting {
    /// Has an Interest wait for the answer to a question.
    ///
    /// # Errors
    /// The Interest, when there is too much already.
    // What is given back is what was given.
    #[allow(clippy::result_large_err)]
    pub fn add(
        &mut self,
        question: Question,
        wanted: Wanted,
        until: Duration,
    ) -> Result<Added, Wanted> {
        let number = lane(&question);
        let bounds = &BOUNDS[number];
        let lane = &mut self.lanes[number];
        if lane.interests >= bounds.interests {
            return Err(wanted);
        }
        if let Some(request) = self.requests.get_mut(&question) {
            if request.wanted.len() >= bounds.in_one {
                return Err(wanted);
            }
            request.wanted.push(wanted);
            lane.interests += 1;
            return Ok(Added::Joined);
        }
        if lane.questions.max(lane.untaken.len()) >= bounds.questions {
            return Err(wanted);
        }
        lane.questions += 1;
        lane.interests += 1;
        lane.untaken.push_back(request::to_text(&question));
        let request = Request {
            wanted: vec![wanted],
            until,
            stale: false,
        };
        self.requests.insert(question, request);
        Ok(Added::Asked)
    }

    /// What Java is to be asked next, of each lane in turn.
    pub fn next(&mut self) -> Option<String> {
        let (one, other) = (self.turn, 1 - self.turn);
        self.turn = other;
        let next = self.lanes[one].untaken.pop_front();
        next.or_else(|| self.lanes[other].untaken.pop_front())
    }

    /// Those who waited for an answer that has come.
    pub fn answered(&mut self, question: &Question) -> Option<Request> {
        let request = self.requests.remove(question)?;
        self.gone(question, &request);
        Some(request)
    }

    /// Those whose time is over.
    pub fn over(&mut self, now: Duration) -> Vec<(Question, Request)> {
        let over = self.requests.extract_if(|_, request| request.until <= now);
        let over: Vec<_> = over.collect();
        for (question, request) in &over {
            self.gone(question, request);
        }
        over
    }

    fn gone(&mut self, question: &Question, request: &Request) {
        let lane = &mut self.lanes[lane(question)];
        lane.questions -= 1;
        lane.interests -= request.wanted.len();
    }

    /// What is answered of a block from here on is not remembered.
    pub fn invalidate(&mut self, block: &BlockKey) {
        self.requests
            .iter_mut()
            .filter(|(question, _)| question.subject.block == *block)
            .for_each(|(_, request)| request.stale = true);
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// All who wait, no more of whom is kept.
    pub fn take(&mut self) -> impl Iterator<Item = Wanted> + use<> {
        let all = std::mem::take(self);
        all.requests
            .into_values()
            .flat_map(|request| request.wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::request::{Asked, Subject};
    use bytes::Bytes;
    use ndn_packet::{Interest, Name};

    const LATER: Duration = Duration::from_secs(5);

    fn wanted() -> Wanted {
        let name: Name = "/a".parse().unwrap();
        let wire = Interest::builder(&name).nonce(1).build();
        Wanted {
            interest: Interest::parse(wire).unwrap(),
            token: None,
            asked: Asked::Metadata,
        }
    }

    fn question(block: i64, about: About) -> Question {
        let block = BlockKey {
            pool: "p".into(),
            block,
        };
        Question {
            subject: Subject { block, about },
            genstamp: Some(1),
        }
    }

    fn key(block: i64) -> Question {
        question(block, About::Token(Bytes::from_static(b"who")))
    }

    fn segment(block: i64) -> Question {
        question(block, About::WriteKey)
    }

    fn add(waiting: &mut Waiting, question: Question) -> Option<Added> {
        waiting.add(question, wanted(), LATER).ok()
    }

    #[test]
    fn each_lane_has_bounds_of_its_own() {
        let mut waiting = Waiting::default();
        for block in 0..300 {
            let added = add(&mut waiting, key(block));
            assert_eq!(added.is_some(), block < 256, "{block}");
        }
        assert_eq!(
            add(&mut waiting, key(0)),
            None,
            "not even to wait with another"
        );
        for block in 0..1100 {
            let added = add(&mut waiting, segment(block));
            assert_eq!(added.is_some(), block < 1024, "{block}");
        }
        for n in 1..1100 {
            let added = add(&mut waiting, segment(7));
            assert_eq!(added, (n < 1024).then_some(Added::Joined), "{n}");
        }
        // Java is given of both in turn.
        let two = [waiting.next().unwrap(), waiting.next().unwrap()];
        assert_eq!(two, ["p 0 1 write", "p 0 1 token 77686f"]);
        assert_eq!(waiting.answered(&key(0)).unwrap().wanted.len(), 1);
        assert_eq!(add(&mut waiting, key(300)), Some(Added::Asked));
        assert_eq!(waiting.answered(&segment(7)).unwrap().wanted.len(), 1024);
        assert!(waiting.answered(&segment(7)).is_none());
    }

    #[test]
    fn the_number_of_all_interests_is_bounded() {
        let mut waiting = Waiting::default();
        for n in 0..16 * 1024 {
            assert!(add(&mut waiting, segment(n / 1000)).is_some(), "{n}");
        }
        assert_eq!(add(&mut waiting, segment(100)), None);
        assert_eq!(waiting.take().count(), 16 * 1024);
        assert!(waiting.is_empty() && waiting.next().is_none());
        assert_eq!(add(&mut waiting, segment(100)), Some(Added::Asked));
    }

    /// What is over makes room, but for what Java has not taken.
    #[test]
    fn time_passes() {
        let mut waiting = Waiting::default();
        for block in 0..256 {
            assert!(add(&mut waiting, key(block)).is_some());
        }
        assert!(waiting.over(Duration::ZERO).is_empty());
        assert_eq!(waiting.over(LATER).len(), 256);
        assert!(waiting.is_empty());
        assert_eq!(add(&mut waiting, key(1)), None);
        while waiting.next().is_some() {}
        assert_eq!(add(&mut waiting, key(1)), Some(Added::Asked));
    }

    #[test]
    fn a_block_that_is_invalidated_is_not_remembered() {
        let mut waiting = Waiting::default();
        for question in [segment(1), key(1), segment(2)] {
            add(&mut waiting, question);
        }
        waiting.invalidate(&segment(1).subject.block);
        for (question, stale) in [(segment(1), true), (key(1), true), (segment(2), false)] {
            assert_eq!(waiting.answered(&question).unwrap().stale, stale);
        }
    }
}
