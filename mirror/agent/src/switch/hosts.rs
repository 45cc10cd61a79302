//! Which hosts are behind which ports, and what of that the controller has not heard. Pure: time comes in from outside.
//!
//! What is known comes from what the bridge has learned, and from what hosts say themselves. Memory is bounded by the
//! constants, as strangers make up addresses: what is beyond is not told.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::frames::{Mac, mac_text};
use super::wire::HostAt;

/// Hosts, and IP addresses, that are known at once.
pub const MOST: usize = 4096;
/// News that wait at once, and that go with one request.
const MOST_NEWS: usize = 2 * MOST;
const AT_ONCE: usize = 512;
/// News of one port within a second: whoever makes up addresses there takes nothing away from others.
const OF_A_PORT: u32 = 200;
const SECOND: Duration = Duration::from_secs(1);
/// After a question was sent out of a port, answers there are told though they say nothing new.
const ASKED: Duration = Duration::from_secs(2);

/// The hosts of a bridge.
#[derive(Debug, Default)]
pub struct Hosts {
    at: HashMap<Mac, u32>,
    addresses: HashMap<(Mac, IpAddr), u32>,
    links: HashSet<u32>,
    asked: BTreeMap<u32, Instant>,
    /// News by port, in a second that began then.
    counted: HashMap<u32, (Instant, u32)>,
    news: VecDeque<(u64, News)>,
    waiting: HashSet<News>,
    last: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct News {
    port: u32,
    mac: Mac,
    address: Option<IpAddr>,
}

impl Hosts {
    /// Ports that lead to other switches: these tell of what is behind them.
    pub fn links(&mut self, links: impl IntoIterator<Item = u32>) {
        self.links = links.into_iter().collect();
        let Self {
            at,
            addresses,
            links,
            ..
        } = self;
        at.retain(|_, port| !links.contains(port));
        addresses.retain(|_, port| !links.contains(port));
    }

    /// What the bridge has learned, all of it.
    pub fn learned(&mut self, all: &[(Mac, u32)], now: Instant) {
        let there: HashMap<Mac, u32> = all.iter().copied().take(MOST).collect();
        // Who has moved behind another switch is that one's to tell of.
        let links = &self.links;
        let is_here = |mac: &Mac| matches!(there.get(mac), Some(port) if !links.contains(port));
        self.at.retain(|mac, _| is_here(mac));
        self.addresses
            .retain(|(mac, _), port| there.get(mac).is_none_or(|now| now == port));
        for (mac, port) in there {
            let is_new = !self.links.contains(&port) && self.at.get(&mac) != Some(&port);
            if is_new && self.may_tell(port, now) {
                self.at.insert(mac, port);
                self.tell(News {
                    port,
                    mac,
                    address: None,
                });
            }
        }
    }

    /// A host says that it has an address.
    pub fn heard(&mut self, port: u32, mac: Mac, address: IpAddr, now: Instant) {
        if self.links.contains(&port) {
            return;
        }
        let is_new = self.addresses.get(&(mac, address)) != Some(&port);
        let is_answer = self.asked.get(&port).is_some_and(|until| now < *until);
        if (is_new || is_answer) && self.may_tell(port, now) {
            if is_new && self.addresses.len() >= MOST {
                self.addresses.clear(); // who is there says so again
            }
            self.addresses.insert((mac, address), port);
            self.tell(News {
                port,
                mac,
                address: Some(address),
            });
        }
    }

    /// A question was sent out of a port.
    pub fn asked(&mut self, port: u32, now: Instant) {
        self.asked.retain(|_, until| now < *until);
        self.asked.insert(port, now + ASKED);
    }

    /// Whether one more may be told of a port.
    fn may_tell(&mut self, port: u32, now: Instant) -> bool {
        let (began, count) = self.counted.entry(port).or_insert((now, 0));
        if now >= *began + SECOND {
            (*began, *count) = (now, 0);
        }
        *count += 1;
        *count <= OF_A_PORT
    }

    /// All is news: to a controller that knows nothing of this bridge, or as one may have forgotten something.
    pub fn announce(&mut self) {
        self.news.clear();
        self.waiting.clear();
        for (mac, port) in self.at.clone() {
            self.tell(News {
                port,
                mac,
                address: None,
            });
        }
        for ((mac, address), port) in self.addresses.clone() {
            self.tell(News {
                port,
                mac,
                address: Some(address),
            });
        }
    }

    fn tell(&mut self, news: News) {
        if self.news.len() >= MOST_NEWS || !self.waiting.insert(news) {
            return;
        }
        self.last += 1;
        self.news.push_back((self.last, news));
    }

    /// Whether there is any.
    #[must_use]
    pub fn has_news(&self) -> bool {
        !self.news.is_empty()
    }

    /// The oldest news, and the number up to which they reach.
    #[must_use]
    pub fn news(&self) -> (Vec<HostAt>, u64) {
        let some = self.news.iter().take(AT_ONCE);
        let told = some.clone().next_back().map_or(0, |(number, _)| *number);
        let hosts = some.map(|(_, news)| HostAt {
            port: news.port,
            mac: mac_text(&news.mac),
            address: news.address,
        });
        (hosts.collect(), told)
    }

    /// The controller has heard all up to this number.
    pub fn told(&mut self, number: u64) {
        while let Some((at, news)) = self.news.front().copied()
            && at <= number
        {
            self.waiting.remove(&news);
            self.news.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Mac = [2, 0, 0, 0, 0, 1];
    const B: Mac = [2, 0, 0, 0, 0, 2];

    fn address(host: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, host])
    }

    fn take(hosts: &mut Hosts) -> Vec<(u32, String, Option<IpAddr>)> {
        let (news, told) = hosts.news();
        hosts.told(told);
        let mut news: Vec<_> = news
            .into_iter()
            .map(|n| (n.port, n.mac, n.address))
            .collect();
        news.sort();
        news
    }

    #[test]
    fn what_is_learned_is_told_once_and_again_when_it_moves() {
        let (mut hosts, now) = (Hosts::default(), Instant::now());
        hosts.learned(&[(A, 3), (B, 4)], now);
        assert_eq!(
            take(&mut hosts),
            [(3, mac_text(&A), None), (4, mac_text(&B), None)]
        );
        hosts.learned(&[(A, 3), (B, 4)], now);
        assert!(!hosts.has_news());
        hosts.learned(&[(A, 5), (B, 4)], now);
        assert_eq!(take(&mut hosts), [(5, mac_text(&A), None)]);
        // Silent for so long that the bridge has forgotten it, then there again.
        hosts.learned(&[(B, 4)], now);
        hosts.learned(&[(A, 5), (B, 4)], now);
        assert_eq!(take(&mut hosts), [(5, mac_text(&A), None)]);
    }

    #[test]
    fn behind_another_switch_are_none_of_its_hosts() {
        let mut hosts = Hosts::default();
        hosts.links([4]);
        let now = Instant::now();
        hosts.learned(&[(A, 3), (B, 4)], now);
        hosts.heard(4, B, address(2), now);
        assert_eq!(take(&mut hosts), [(3, mac_text(&A), None)]);
        hosts.links([]);
        hosts.learned(&[(A, 3), (B, 4)], now);
        assert_eq!(take(&mut hosts), [(4, mac_text(&B), None)]);
    }

    #[test]
    fn an_address_is_told_once_unless_its_port_was_asked() {
        let (mut hosts, now) = (Hosts::default(), Instant::now());
        hosts.heard(3, A, address(1), now);
        hosts.heard(3, A, address(1), now);
        assert_eq!(take(&mut hosts), [(3, mac_text(&A), Some(address(1)))]);
        hosts.heard(3, A, address(1), now);
        assert!(!hosts.has_news());
        hosts.asked(3, now);
        hosts.heard(3, A, address(1), now + ASKED / 2);
        hosts.heard(4, B, address(2), now + ASKED / 2);
        assert_eq!(take(&mut hosts).len(), 2);
        hosts.heard(4, B, address(2), now + ASKED / 2);
        hosts.heard(3, A, address(1), now + ASKED);
        assert!(!hosts.has_news());
    }

    #[test]
    fn what_was_not_heard_of_stays_news_and_all_is_news_to_another_controller() {
        let (mut hosts, now) = (Hosts::default(), Instant::now());
        hosts.learned(&[(A, 3)], now);
        let (news, told) = hosts.news();
        hosts.heard(3, A, address(1), now);
        assert_eq!((news.len(), hosts.news().0.len()), (1, 2));
        hosts.told(told);
        assert_eq!(take(&mut hosts), [(3, mac_text(&A), Some(address(1)))]);
        hosts.announce();
        assert_eq!(take(&mut hosts).len(), 2);
    }

    fn made_up(n: u32) -> Mac {
        let [_, b, c, d] = n.to_be_bytes();
        [2, 0, 1, b, c, d]
    }

    #[test]
    fn made_up_addresses_cost_bounded_memory() {
        let (mut hosts, now) = (Hosts::default(), Instant::now());
        for n in 0..40_000u32 {
            // By many ports, and for long.
            let (port, at) = (n % 97, now + Duration::from_millis(n.into()));
            hosts.learned(&[(made_up(n), port)], at);
            hosts.heard(port, made_up(n), IpAddr::from(n.to_be_bytes()), at);
        }
        let all: Vec<_> = (0..20_000).map(|n| (made_up(n), n % 97)).collect();
        hosts.learned(&all, now + Duration::from_secs(60));
        assert!(hosts.at.len() <= MOST && hosts.addresses.len() <= MOST);
        assert!(hosts.news.len() <= MOST_NEWS);
        assert_eq!(hosts.news().0.len(), AT_ONCE);
    }

    #[test]
    fn who_makes_up_addresses_at_a_port_takes_nothing_away_from_others() {
        let (mut hosts, now) = (Hosts::default(), Instant::now());
        for n in 0..1000u32 {
            hosts.heard(3, made_up(n), IpAddr::from(n.to_be_bytes()), now);
        }
        hosts.heard(4, A, address(1), now);
        let told = take(&mut hosts);
        assert_eq!(told.len() as u32, OF_A_PORT + 1);
        assert!(told.contains(&(4, mac_text(&A), Some(address(1)))));
        // What could not be told then is told when it is heard again.
        hosts.heard(3, made_up(999), address(9), now + SECOND);
        assert_eq!(take(&mut hosts).len(), 1);
    }
}
