//! Detects times in which the machine gave this process no CPU time. A late answer or a refusal then says nothing
//! about the service.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::FutureExt;

/// The interval at which the watch checks its clock.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// If the watch is woken up later than this, the machine counts as having stood still.
const LATE: Duration = Duration::from_millis(500);
const TIMES_MAX: usize = 5;

/// A thread that measures how late it is woken up. It ends when this value is dropped.
struct StandstillWatch {
    late: Arc<AtomicBool>,
    _end: Sender<()>,
}

impl StandstillWatch {
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

/// Calls `act`. If it panics while the machine stood still, calls it again, up to 5 times in all. Other panics are
/// passed on.
pub async fn without_standstill(act: impl AsyncFn()) {
    for _ in 1..TIMES_MAX {
        let watch = StandstillWatch::start();
        match AssertUnwindSafe(act()).catch_unwind().await {
            Ok(()) => return,
            Err(panic) if !watch.was_late() => resume_unwind(panic),
            Err(_) => {}
        }
    }
    act().await;
}
