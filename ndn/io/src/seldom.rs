//! Log lines that may come again and again, said seldom.

use std::time::Duration;

/// Time between two lines of one kind.
const INTERVAL: Duration = Duration::from_secs(60);

/// Lets the first of a run of equal events be said, and then one a minute.
#[derive(Debug, Default)]
pub(crate) struct Seldom {
    next: Option<Duration>,
}

impl Seldom {
    /// Whether what happens now is to be said.
    pub fn says(&mut self, now: Duration) -> bool {
        let says = self.next.is_none_or(|next| next <= now);
        if says {
            self.next = Some(now + INTERVAL);
        }
        says
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_then_once_a_minute() {
        let mut seldom = Seldom::default();
        let said = (0..180).filter(|&s| seldom.says(Duration::from_secs(s)));
        assert_eq!(said.collect::<Vec<_>>(), [0, 60, 120]);
    }
}
