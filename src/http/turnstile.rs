//! Lets few large requests in at a time: a body of many megabytes is several times as much while it is parsed,
//! and a process that runs out of memory ends everybody's work. Who finds the room full is told to come back.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::http::code::Code;
use crate::http::error::{ApiError, RETRY_AFTER};

/// Requests that are read, or wait to be worked on.
const SEATS: usize = 64;
/// Requests that are worked on.
const TURNS: usize = 4;
/// How long a request that was read waits for its turn.
const WAIT: Duration = Duration::from_secs(30);

/// The room, and the way through.
#[derive(Debug)]
pub struct Turnstile {
    seats: Semaphore,
    turns: Semaphore,
}

impl Default for Turnstile {
    fn default() -> Self {
        Self { seats: Semaphore::new(SEATS), turns: Semaphore::new(TURNS) }
    }
}

impl Turnstile {
    /// A place for a request; asked for before its body is read.
    pub(crate) fn seat(&self) -> Result<SemaphorePermit<'_>, ApiError> {
        self.seats.try_acquire().map_err(|_| full())
    }

    /// The turn of a request that was read; first come, first served.
    pub(crate) async fn turn(&self) -> Result<SemaphorePermit<'_>, ApiError> {
        let turn = timeout(WAIT, self.turns.acquire()).await;
        turn.ok().and_then(Result::ok).ok_or_else(full)
    }
}

fn full() -> ApiError {
    let message = "Too many bulk requests are under way, please try again";
    ApiError::new(Code::Overloaded, message).retry_in(RETRY_AFTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[actix_web::test]
    async fn who_finds_no_seat_is_told_to_come_back() {
        let turnstile = Turnstile::default();
        let taken: Vec<_> = (0..SEATS).map(|_| turnstile.seat().unwrap()).collect();
        let error = turnstile.seat().unwrap_err();
        assert_eq!((error.code, error.retry_after), (Code::Overloaded, Some(RETRY_AFTER)));
        drop(taken);
        assert!(turnstile.seat().is_ok());
    }

    #[actix_web::test]
    async fn turns_come_as_others_go() {
        let turnstile = Turnstile::default();
        let mut taken = Vec::new();
        for _ in 0..TURNS {
            taken.push(turnstile.turn().await.unwrap());
        }
        let mut next = Box::pin(turnstile.turn());
        assert!(futures_util::poll!(&mut next).is_pending());
        taken.pop();
        assert!(next.await.is_ok());
    }
}
