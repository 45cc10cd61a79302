//! What management needs all workers for: figures of all together, and content that lies with any of them. A request
//! goes from the first worker by all others and comes back with what they have.

use crate::forwarder::Forwarder;
use crate::request::Request;
use crate::shard::{Control, Errand, Figures, Message, Task};

/// Requests that are on their way at once.
const MAX_ERRANDS: usize = 16;

impl Forwarder {
    /// Figures of this worker.
    pub(crate) fn figures(&self) -> Figures {
        Figures {
            status: self.status(),
            tables: self.memory().tables(),
            faces: self
                .faces()
                .map(|(id, _, _, counters)| (id, counters))
                .collect(),
        }
    }

    /// Sends a request by all other workers; false where too many are on their way.
    pub(crate) fn run_errand(&mut self, request: &Request, task: Task) -> bool {
        let has_room = self.manager.errands < MAX_ERRANDS;
        if has_room {
            self.manager.errands += 1;
            self.send_errand(Errand {
                request: request.clone(),
                task,
                next: 1,
            });
        }
        has_room
    }

    fn send_errand(&mut self, errand: Errand) {
        let to = errand.next;
        self.tell(to, Message::control(Control::Errand(errand)));
    }

    /// A request has come here on its way.
    pub(super) fn on_errand(&mut self, mut errand: Errand) {
        if self.manages() {
            self.manager.errands -= 1;
            return self.finish_errand(errand);
        }
        let is_done = match &mut errand.task {
            Task::Figures(sum) => {
                sum.add(&self.figures());
                false
            }
            Task::Erase {
                prefix,
                left,
                erased,
                more,
            } => {
                let (count, are_more) = self.erase_own(prefix, *left);
                *left -= count;
                *erased += count;
                *more |= are_more;
                *left == 0
            }
        };
        let count = self
            .state
            .place
            .as_ref()
            .map_or(1, |place| place.workers.count());
        errand.next = if is_done {
            0
        } else {
            (errand.next + 1) % count
        };
        self.send_errand(errand);
    }

    fn finish_errand(&mut self, errand: Errand) {
        let Errand { request, task, .. } = errand;
        match task {
            Task::Figures(figures) => self.serve_figures(&request, &figures),
            Task::Erase { erased, more, .. } => self.finish_erasing(&request, erased, more),
        }
    }
}
