//! Answers that are remembered for a while and shared. The same is asked once at a time: those who want it meanwhile wait for
//! that answer, so that no older answer ever takes the place of a newer one.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ndn_packet::Name;
use ndn_repo::Cache;

use super::RemoteError;
use crate::handles::lock;

/// Answers by name.
pub struct SharedAnswers<V> {
    inner: Mutex<Inner<V>>,
    /// `None`: for good.
    believed: Option<Duration>,
}

struct Inner<V> {
    /// Each with the time until which it is believed, where that ends.
    answers: Cache<Name, (Option<Instant>, V)>,
    asked: HashMap<Name, Arc<Question<V>>>,
}

/// What is being asked.
struct Question<V> {
    answer: Mutex<Option<Result<V, RemoteError>>>,
    answered: Condvar,
}

/// What is known of a name.
pub enum SharedAnswer<'a, V: Clone> {
    /// It is remembered.
    Known(V),
    /// Another call asks.
    Pending(PendingAnswer<V>),
    /// The caller is to ask.
    Unknown(OpenQuestion<'a, V>),
}

/// Waits for the answer to what somebody else asks.
pub struct PendingAnswer<V>(Arc<Question<V>>);

/// Asks, for all who want to know. Dropped without an answer, it tells them that there will be none.
pub struct OpenQuestion<'a, V: Clone> {
    answers: &'a SharedAnswers<V>,
    name: Name,
    since: Instant,
    question: Arc<Question<V>>,
    /// The answer, and its bytes.
    answer: Result<(V, usize), RemoteError>,
}

impl<V: Clone> SharedAnswers<V> {
    /// For answers of so many bytes in all. Each is believed for so long, or for as long as it took to come: one that is a
    /// long time on its way must not be asked for again by each that wants it.
    pub fn new(bytes: usize, believed: Duration) -> Self {
        Self::believing(bytes, Some(believed))
    }

    /// For answers of so many bytes in all which never change.
    pub fn for_good(bytes: usize) -> Self {
        Self::believing(bytes, None)
    }

    fn believing(bytes: usize, believed: Option<Duration>) -> Self {
        Self {
            inner: Mutex::new(Inner {
                answers: Cache::new(bytes),
                asked: HashMap::new(),
            }),
            believed,
        }
    }

    /// What is known of `name`.
    pub fn find(&self, name: &Name) -> SharedAnswer<'_, V> {
        let inner = &mut *lock(&self.inner);
        let now = Instant::now();
        if let Some((until, value)) = inner.answers.get(name)
            && until.is_none_or(|until| now < until)
        {
            return SharedAnswer::Known(value.clone());
        }
        if let Some(question) = inner.asked.get(name) {
            return SharedAnswer::Pending(PendingAnswer(question.clone()));
        }
        let question = Arc::new(Question {
            answer: Mutex::new(None),
            answered: Condvar::new(),
        });
        inner.asked.insert(name.clone(), question.clone());
        SharedAnswer::Unknown(OpenQuestion {
            answers: self,
            name: name.clone(),
            since: now,
            question,
            answer: Err(RemoteError::Stopped),
        })
    }

    /// What is known of `name`, or what `ask` tells of it: a value, and its bytes.
    ///
    /// # Errors
    /// What `ask` says, here or where it was asked already.
    pub fn get(
        &self,
        name: &Name,
        ask: impl FnOnce() -> Result<(V, usize), RemoteError>,
    ) -> Result<V, RemoteError> {
        match self.find(name) {
            SharedAnswer::Known(value) => Ok(value),
            SharedAnswer::Pending(pending) => pending.wait(),
            SharedAnswer::Unknown(question) => question.answer(ask()),
        }
    }

    /// Forgets all that was answered.
    pub fn forget(&self) {
        lock(&self.inner).answers.shed(|_| true);
    }
}

impl<V: Clone> PendingAnswer<V> {
    /// The answer, once it is there.
    ///
    /// # Errors
    /// Why there is none.
    pub fn wait(self) -> Result<V, RemoteError> {
        let mut answer = lock(&self.0.answer);
        loop {
            if let Some(answer) = &*answer {
                return answer.clone();
            }
            let waited = self.0.answered.wait(answer);
            answer = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<V: Clone> OpenQuestion<'_, V> {
    /// Tells all who want to know, and remembers it: a value and its bytes.
    ///
    /// # Errors
    /// The same, where there is no answer.
    pub fn answer(mut self, answer: Result<(V, usize), RemoteError>) -> Result<V, RemoteError> {
        self.answer = answer.clone();
        answer.map(|(value, _)| value)
    }
}

impl<V: Clone> Drop for OpenQuestion<'_, V> {
    fn drop(&mut self) {
        let inner = &mut *lock(&self.answers.inner);
        let now = Instant::now();
        if let Ok((value, bytes)) = &self.answer {
            let is_over = |until: &Option<Instant>| until.is_some_and(|until| until <= now);
            inner.answers.shed(|(until, _)| is_over(until));
            let took = now - self.since;
            let until = self.answers.believed.map(|least| now + least.max(took));
            let bytes = bytes + self.name.wire_len();
            let name = self.name.clone();
            inner.answers.insert(name, (until, value.clone()), bytes);
        }
        inner.asked.remove(&self.name);
        *lock(&self.question.answer) = Some(self.answer.clone().map(|(value, _)| value));
        self.question.answered.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> Name {
        "/a".parse().expect("a name")
    }

    #[test]
    fn asked_once_by_all_who_want_it_at_once() {
        let answers = SharedAnswers::new(1000, Duration::ZERO);
        std::thread::scope(|scope| {
            let SharedAnswer::Unknown(asking) = answers.find(&name()) else {
                panic!("nobody asked");
            };
            let others: Vec<_> = (0..5)
                .map(|_| {
                    let SharedAnswer::Pending(waiting) = answers.find(&name()) else {
                        panic!("it is being asked");
                    };
                    scope.spawn(|| waiting.wait())
                })
                .collect();
            assert_eq!(asking.answer(Ok((7, 1))), Ok(7));
            for other in others {
                assert_eq!(other.join().expect("no panic"), Ok(7));
            }
        });
    }

    #[test]
    fn who_goes_away_without_an_answer_lets_nobody_wait() {
        let answers: SharedAnswers<u8> = SharedAnswers::new(1000, Duration::from_secs(60));
        let SharedAnswer::Unknown(asking) = answers.find(&name()) else {
            panic!("nobody asked");
        };
        let SharedAnswer::Pending(waiting) = answers.find(&name()) else {
            panic!("it is being asked");
        };
        drop(asking);
        assert_eq!(waiting.wait(), Err(RemoteError::Stopped));
        assert_eq!(answers.get(&name(), || Ok((1, 1))), Ok(1));
        assert_eq!(answers.get(&name(), || Ok((2, 1))), Ok(1));
        answers.forget();
        assert_eq!(answers.get(&name(), || Ok((3, 1))), Ok(3));
    }

    #[test]
    fn believed_for_as_long_as_it_took() {
        let answers = SharedAnswers::new(1000, Duration::ZERO);
        let took = Duration::from_millis(20);
        let asked = Instant::now();
        let slow = || {
            std::thread::sleep(took);
            Ok((1, 1))
        };
        assert_eq!(answers.get(&name(), slow), Ok(1));
        let answered = Instant::now();
        let mut inner = lock(&answers.inner);
        let (until, _) = *inner.answers.get(&name()).expect("remembered");
        let until = until.expect("a time");
        assert!(until >= asked + 2 * took && until <= answered + (answered - asked));
    }
}
