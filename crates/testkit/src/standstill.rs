//! Seconds in which the machine gave this process no processor. What a service answers late or refuses then says
//! nothing about it.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::FutureExt;

/// The watch looks at its clock at this interval.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// If the watch is woken up later than this, the machine stood still.
const LATE: Duration = Duration::from_millis(500);
const TIMES_MAX: usize = 5;

/// A thread of its own that measures how late it is woken up. It ends with this value.
struct Watch {
    late: Arc<AtomicBool>,
    _end: Sender<()>,
}

impl Watch {
    fn start() -> Self {
        let late = Arc::<AtomicBool>::default();
        let (end, ended) = mpsc::channel();
        let noted = late.clone();
        thread::spawn(move || {
            let mut looked = Instant::now();
            while ended.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                noted.fetch_or(looked.elapsed() > LATE, Ordering::Relaxed);
                looked = Instant::now();
            }
        });
        Self { late, _end: end }
    }

    fn was_late(&self) -> bool {
        self.late.load(Ordering::Relaxed)
    }
}

/// Calls `act`, and again, up to 5 times, while it panics and the machine stood still meanwhile.
pub async fn without_standstill(act: impl AsyncFn()) {
    for _ in 1..TIMES_MAX {
        let watch = Watch::start();
        match AssertUnwindSafe(act()).catch_unwind().await {
            Ok(()) => return,
            Err(panic) if !watch.was_late() => resume_unwind(panic),
            Err(_) => {}
        }
    }
    act().await;
}
