//! Proof that a peer by datagrams receives at the address that it sends from.
//!
//! Anybody can send from any address. Who asks for large packets in another's name would have them sent to that other:
//! some 60 bytes asked for bring 64 KiB. So a face sends jumbo packets only when the peer has brought back a number that
//! was sent to its address, as QUIC (RFC 9000, section 8) and DTLS (RFC 9147, section 5.1) have it.
//!
//! ```text
//! opener                                  listener
//!   | -- challenge a ----------------------> |
//!   | <----------- echo a, challenge b ----- |   the listener is proven
//!   | -- echo b ---------------------------> |   the opener is proven
//!   | -- challenge a, echo b (again) ------> |   after a moment, then every few seconds
//!   | <----------------------------- echo a  |   nothing is asked any more
//! ```
//! A hello with a challenge is answered, one without is not: so many are sent as are received.

use crate::face::hello::Hello;

/// What one face and its peer have proven to each other.
#[derive(Debug)]
pub(crate) struct AddressProof {
    own: u64,
    /// The peer's last challenge.
    peer: Option<u64>,
    proven: bool,
    /// The peer has asked for nothing when it spoke last.
    content: bool,
}

impl AddressProof {
    /// `challenge` must be a number that nobody can guess.
    pub fn new(challenge: u64) -> Self {
        Self {
            own: challenge,
            peer: None,
            proven: false,
            content: false,
        }
    }

    /// Whether the peer receives at its address.
    pub fn is_proven(&self) -> bool {
        self.proven
    }

    /// Whether both are proven, as far as can be known here.
    pub fn is_settled(&self) -> bool {
        self.proven && self.content
    }

    /// Takes what a hello says; true where it must be answered.
    pub fn on_hello(&mut self, hello: &Hello) -> bool {
        self.proven |= hello.echo == Some(self.own);
        self.content = hello.challenge.is_none();
        if hello.challenge.is_some() {
            self.peer = hello.challenge;
        }
        hello.challenge.is_some()
    }

    /// Adds to a hello what it is to say; `asks` where it is not an answer.
    pub fn put(&self, hello: &mut Hello, asks: bool) {
        hello.challenge = (asks || !self.proven).then_some(self.own);
        hello.echo = self.peer;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(proof: &AddressProof, asks: bool) -> Hello {
        let mut hello = Hello::default();
        proof.put(&mut hello, asks);
        hello
    }

    /// Sends `first` to `b`, and answers to and fro; returns how many hellos went in all.
    fn talk(a: &mut AddressProof, b: &mut AddressProof, first: Hello) -> usize {
        let (mut sent, mut next) = (1, first);
        let (mut from, mut to) = (a, b);
        while to.on_hello(&next) {
            next = hello(to, false);
            sent += 1;
            assert!(sent < 10, "no end");
            std::mem::swap(&mut from, &mut to);
        }
        sent
    }

    #[test]
    fn three_hellos_prove_both_and_two_more_settle_it() {
        let (mut a, mut b) = (AddressProof::new(1), AddressProof::new(2));
        let first = hello(&a, true);
        assert_eq!(talk(&mut a, &mut b, first), 3);
        assert!(a.is_proven() && b.is_proven() && !a.is_settled());
        let again = hello(&a, true);
        assert_eq!(talk(&mut a, &mut b, again), 2);
        assert!(a.is_settled());
    }

    #[test]
    fn two_openers_come_to_an_end() {
        let (mut a, mut b) = (AddressProof::new(1), AddressProof::new(2));
        let (first, second) = (hello(&a, true), hello(&b, true));
        talk(&mut a, &mut b, first);
        talk(&mut b, &mut a, second);
        assert!(a.is_proven() && b.is_proven());
    }

    #[test]
    fn who_hears_nothing_proves_nothing() {
        let mut listener = AddressProof::new(1);
        for guess in [None, Some(0), Some(2)] {
            listener.on_hello(&Hello {
                challenge: Some(9),
                echo: guess,
                ..Hello::default()
            });
            assert!(!listener.is_proven());
        }
    }

    #[test]
    fn a_lost_hello_is_made_good_by_the_next() {
        let (mut a, mut b) = (AddressProof::new(1), AddressProof::new(2));
        b.on_hello(&hello(&a, true));
        a.on_hello(&hello(&b, false));
        // The answer of `a` is lost.
        assert!(a.is_proven() && !b.is_proven() && !a.is_settled());
        let again = hello(&a, true);
        talk(&mut a, &mut b, again);
        assert!(b.is_proven());
    }
}
