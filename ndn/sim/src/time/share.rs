//! Max-min fair shares: every flow gets as much as it can without taking from one that has no more.
//!
//! All rates rise together from nothing. Where a link is full, the flows over it stay as they are, and the others go on
//! (progressive filling; Bertsekas and Gallager, Data Networks, 6.5.2). A flow that crosses a link twice, as a chain of
//! replicas may, takes twice its rate there, which is what two TCP connections would get.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A link that a flow crosses, and how many times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// Direction of a link, as [`Path`](crate::topology::Path) has it.
    pub line: u32,
    /// How many times; one at least.
    pub times: u32,
}

/// Computes shares over links of fixed capacities, again and again without allocating anew.
#[derive(Debug)]
pub struct Shares {
    capacity: Vec<f64>,
    /// Of each link: what flows that stay as they are leave of it, and how many times the others cross it.
    left: Vec<f64>,
    rising: Vec<f64>,
    /// Flows over each link, one link after the other; `starts[l]` is where those of link `l` begin.
    flows: Vec<u32>,
    starts: Vec<u32>,
    /// Links that some flow crosses.
    used: Vec<u32>,
    heap: BinaryHeap<Level>,
}

/// A rate at which a link would be full. The least one is the greatest, for the heap.
#[derive(Debug, Clone, Copy)]
struct Level {
    rate: f64,
    line: u32,
}

impl Ord for Level {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_rate = other.rate.total_cmp(&self.rate);
        by_rate.then(other.line.cmp(&self.line))
    }
}

impl PartialOrd for Level {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Level {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Level {}

impl Shares {
    /// Over links of these capacities, in bits a second.
    pub fn new(capacity: Vec<f64>) -> Self {
        let links = capacity.len();
        Shares {
            capacity,
            left: vec![0.0; links],
            rising: vec![0.0; links],
            flows: Vec::new(),
            starts: vec![0; links + 1],
            used: Vec::new(),
            heap: BinaryHeap::new(),
        }
    }

    /// Sets the rate of each flow, in bits a second, by the links that it crosses. One that crosses none waits for
    /// nothing: its rate is infinite.
    pub fn compute(&mut self, crossed: &[&[Use]], rates: &mut Vec<f64>) {
        rates.clear();
        rates.resize(crossed.len(), f64::INFINITY);
        self.index(crossed);
        let mut set = vec![false; crossed.len()];
        while let Some(Level { rate, line }) = self.heap.pop() {
            let at = line as usize;
            if self.rising[at] <= 0.0 {
                continue;
            }
            // Flows that stay as they are have left more of it for the others than when it was put into the heap.
            let now = (self.left[at] / self.rising[at]).max(rate);
            if now > rate {
                self.heap.push(Level { rate: now, line });
                continue;
            }
            for place in self.starts[at]..self.starts[at + 1] {
                let flow = self.flows[place as usize] as usize;
                if std::mem::replace(&mut set[flow], true) {
                    continue;
                }
                rates[flow] = rate;
                for crossing in crossed[flow] {
                    let (line, times) = (crossing.line as usize, f64::from(crossing.times));
                    self.left[line] = (self.left[line] - times * rate).max(0.0);
                    self.rising[line] -= times;
                }
            }
        }
    }

    /// Lists flows by link, and puts the links into the heap.
    fn index(&mut self, crossed: &[&[Use]]) {
        self.starts.fill(0);
        self.used.clear();
        self.heap.clear();
        for crossing in crossed.iter().copied().flatten() {
            let at = crossing.line as usize;
            if self.starts[at + 1] == 0 {
                self.used.push(crossing.line);
                self.left[at] = self.capacity[at];
                self.rising[at] = 0.0;
            }
            self.starts[at + 1] += 1;
            self.rising[at] += f64::from(crossing.times);
        }
        for at in 1..self.starts.len() {
            self.starts[at] += self.starts[at - 1];
        }
        let mut next = self.starts.clone();
        self.flows.clear();
        self.flows
            .resize(self.starts[self.capacity.len()] as usize, 0);
        for (flow, uses) in crossed.iter().enumerate() {
            for crossing in *uses {
                let place = &mut next[crossing.line as usize];
                self.flows[*place as usize] = flow as u32;
                *place += 1;
            }
        }
        for &line in &self.used {
            let at = line as usize;
            let rate = self.left[at] / self.rising[at];
            self.heap.push(Level { rate, line });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shares(capacity: &[f64], flows: &[Vec<Use>]) -> Vec<f64> {
        let crossed: Vec<&[Use]> = flows.iter().map(Vec::as_slice).collect();
        let mut rates = Vec::new();
        Shares::new(capacity.to_vec()).compute(&crossed, &mut rates);
        rates
    }

    fn over(lines: &[u32]) -> Vec<Use> {
        lines.iter().map(|&line| Use { line, times: 1 }).collect()
    }

    #[test]
    fn the_long_flow_and_the_short_ones() {
        // Three links in a row: one flow over all, one over each.
        let flows = [over(&[0, 1, 2]), over(&[0]), over(&[1]), over(&[2])];
        assert_eq!(shares(&[6.0, 4.0, 10.0], &flows), [2.0, 4.0, 2.0, 8.0]);
    }

    #[test]
    fn who_crosses_twice_takes_twice() {
        let twice = vec![Use { line: 0, times: 2 }];
        assert_eq!(shares(&[9.0], &[twice, over(&[0])]), [3.0, 3.0]);
        assert_eq!(shares(&[9.0], &[vec![]]), [f64::INFINITY]);
    }

    #[test]
    fn what_one_cannot_use_the_others_get() {
        let flows = [over(&[0, 1]), over(&[0]), over(&[0])];
        assert_eq!(shares(&[10.0, 2.0], &flows), [2.0, 4.0, 4.0]);
    }

    /// Flows over up to 12 links, each link once in a flow.
    fn flows() -> impl Strategy<Value = Vec<Vec<Use>>> {
        let uses = prop::collection::btree_map(0u32..12, 1u32..4, 1..6);
        let flow = uses.prop_map(|uses| {
            let uses = uses.into_iter();
            uses.map(|(line, times)| Use { line, times }).collect()
        });
        prop::collection::vec(flow, 1..60)
    }

    proptest! {
        /// No link carries more than it can; each flow crosses a full link on which nobody has more than it; and the
        /// same flows get the same.
        #[test]
        fn shares_are_max_min_fair(capacity in prop::collection::vec(1.0f64..1e11, 12), flows in flows()) {
            let rates = shares(&capacity, &flows);
            let mut load = vec![0.0; capacity.len()];
            let mut most = vec![0.0f64; capacity.len()];
            for (flow, rate) in flows.iter().zip(&rates) {
                for crossing in flow {
                    load[crossing.line as usize] += f64::from(crossing.times) * rate;
                    most[crossing.line as usize] = most[crossing.line as usize].max(*rate);
                }
            }
            for (load, capacity) in load.iter().zip(&capacity) {
                prop_assert!(*load <= capacity * (1.0 + 1e-9), "{} over {}", load, capacity);
            }
            for (flow, rate) in flows.iter().zip(&rates) {
                prop_assert!(*rate > 0.0);
                let held_back = flow.iter().any(|crossing| {
                    let at = crossing.line as usize;
                    load[at] >= capacity[at] * (1.0 - 1e-9) && most[at] <= rate * (1.0 + 1e-9)
                });
                prop_assert!(held_back, "a flow of {} could have more", rate);
            }
            prop_assert_eq!(shares(&capacity, &flows), rates);
        }

        /// Whoever comes first, each gets the same.
        #[test]
        fn order_changes_nothing(capacity in prop::collection::vec(1.0f64..1e11, 12), flows in flows()) {
            let mut other = flows.clone();
            other.reverse();
            let mut reversed = shares(&capacity, &other);
            reversed.reverse();
            for (one, other) in shares(&capacity, &flows).iter().zip(&reversed) {
                prop_assert!((one - other).abs() <= 1e-9 * one, "{} and {}", one, other);
            }
        }
    }
}
