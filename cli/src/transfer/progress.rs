//! The progress bar of a transfer, on standard error and only where a person watches.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar that may be invisible.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar for `total` bytes (unknown: `None`), hidden where standard error is no terminal.
    pub fn new(total: Option<u64>, quiet: bool) -> Self {
        let hidden = quiet || !std::io::stderr().is_terminal();
        let target = if hidden {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(8)
        };
        let bar = ProgressBar::with_draw_target(total, target);
        let progress = Progress { bar };
        progress.style(total.is_some());
        if !hidden {
            progress.bar.enable_steady_tick(Duration::from_millis(250));
        }
        progress
    }

    fn style(&self, total_is_known: bool) {
        let form = if total_is_known {
            "{bar:30} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}"
        } else {
            "{spinner} {binary_bytes} {binary_bytes_per_sec} {elapsed}"
        };
        if let Ok(style) = ProgressStyle::with_template(form) {
            self.bar.set_style(style);
        }
    }

    /// The total has become known.
    pub fn set_total(&self, bytes: u64) {
        if self.bar.length() != Some(bytes) {
            self.style(true);
            self.bar.set_length(bytes);
        }
    }

    /// So many bytes are done.
    pub fn set(&self, bytes: u64) {
        self.bar.set_position(bytes);
    }

    /// Prints something else without the bar in between.
    pub fn aside(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Takes the bar off the screen.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
