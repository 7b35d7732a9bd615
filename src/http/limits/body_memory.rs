//! Limits the memory of request bodies, for the process and for each account. Texts and parsed values have separate
//! budgets: in a common one, texts could take all the memory, and their requests would wait forever for memory for the
//! values.

use std::sync::Arc;
use std::time::Duration;

use strict_json::JsonLimits;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::domain::access::api_key::KeyOwner;
use crate::http::limits::keyed_semaphores::KeyedSemaphores;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::{ApiError, RETRY_AFTER};

/// How long a request waits for memory before it is refused.
const ROOM_WAIT: Duration = Duration::from_secs(10);
/// The number of bulk requests that are processed at the same time.
const BULK_TURNS: usize = 4;
/// How long a bulk request waits to be processed before it is refused.
const TURN_WAIT: Duration = Duration::from_secs(30);

/// The most bytes of one parsed value, with its digits or name and the spare capacity of its array or object.
const VALUE_BYTES: usize = 96;
/// The bytes of an object, not including the object's members.
const OBJECT_BYTES: usize = 640;

/// The memory that request bodies may take, in bytes: of all accounts together, and of one account.
#[derive(Debug, Clone, Copy)]
pub struct BodyMemoryLimits {
    pub process_max: usize,
    pub account_max: usize,
}

/// The memory budgets for the texts and for the parsed values of request bodies.
#[derive(Debug)]
pub struct BodyMemory {
    texts: BodyBudget,
    values: BodyBudget,
    bulk_turns: Semaphore,
}

/// A budget of the process, and a share of it for each account. Requests without an account have one common share.
#[derive(Debug)]
struct BodyBudget {
    process: Arc<Semaphore>,
    shares: KeyedSemaphores<Option<KeyOwner>>,
    size: usize,
}

/// The memory reserved for a body. Dropping this value releases the memory.
#[derive(Debug)]
pub(crate) struct BodyPermit {
    share: OwnedSemaphorePermit,
    process: OwnedSemaphorePermit,
}

impl BodyMemory {
    pub fn new(bytes: BodyMemoryLimits) -> Self {
        let room = || BodyBudget {
            process: Arc::new(Semaphore::new(bytes.process_max)),
            shares: KeyedSemaphores::new(bytes.account_max),
            size: bytes.process_max,
        };
        Self { texts: room(), values: room(), bulk_turns: Semaphore::new(BULK_TURNS) }
    }

    /// Reserves memory for the text of a body. Waits while too much memory is in use, and fails after `ROOM_WAIT`.
    pub(crate) async fn text(&self, account: Option<KeyOwner>, bytes: usize) -> Result<BodyPermit, ApiError> {
        self.texts.take(account, bytes).await
    }

    /// Reserves memory for the parsed values of this text. Waits at most `ROOM_WAIT`.
    pub(crate) async fn values(
        &self,
        account: Option<KeyOwner>,
        text: &[u8],
    ) -> Result<BodyPermit, ApiError> {
        self.values.take(account, weight(text)).await
    }

    /// Waits until a bulk request may be processed. The request that waits longest is first.
    pub(crate) async fn bulk_turn(&self) -> Result<SemaphorePermit<'_>, ApiError> {
        let turn = timeout(TURN_WAIT, self.bulk_turns.acquire()).await;
        turn.ok().and_then(Result::ok).ok_or_else(|| {
            let message = "Too many bulk requests are under way, please try again";
            ApiError::new(ErrorCode::Overloaded, message).retry_in(RETRY_AFTER)
        })
    }
}

impl BodyBudget {
    async fn take(&self, account: Option<KeyOwner>, bytes: usize) -> Result<BodyPermit, ApiError> {
        if bytes > self.size {
            let message = "The request body holds more values than the service can work on";
            return Err(ApiError::new(ErrorCode::PayloadTooLarge, message));
        }
        // A body that is larger than an account's share takes the whole share.
        let of_share = permits(bytes.min(self.shares.size()));
        let share = timeout(ROOM_WAIT, self.shares.of(account).acquire_many_owned(of_share)).await;
        let share = share.ok().and_then(Result::ok).ok_or_else(share_is_full)?;
        let process = timeout(ROOM_WAIT, Arc::clone(&self.process).acquire_many_owned(permits(bytes))).await;
        let process = process.ok().and_then(Result::ok).ok_or_else(process_is_full)?;
        Ok(BodyPermit { share, process })
    }
}

impl BodyPermit {
    /// Reserves more bytes for the same body, or fails at once: requests that wait for each other could deadlock.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), ApiError> {
        let more = |permit: &OwnedSemaphorePermit| {
            Arc::clone(permit.semaphore()).try_acquire_many_owned(permits(bytes))
        };
        let share = more(&self.share).map_err(|_| share_is_full())?;
        self.process.merge(more(&self.process).map_err(|_| process_is_full())?);
        self.share.merge(share);
        Ok(())
    }
}

/// Converts bytes to a number of permits. The settings keep every value below `u32::MAX`.
fn permits(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn share_is_full() -> ApiError {
    let message = "Too much is being sent with this key at the same time, please try again";
    ApiError::new(ErrorCode::RateLimited, message).retry_in(RETRY_AFTER)
}

fn process_is_full() -> ApiError {
    let message = "Too much is being sent at the same time, please try again";
    ApiError::new(ErrorCode::Overloaded, message).retry_in(RETRY_AFTER)
}

/// Estimates the bytes of a parsed text. Every value except the first follows a comma, a colon or a bracket. These also
/// occur within strings, so the estimate may be too high, but never too low.
fn weight(text: &[u8]) -> usize {
    let bytes = |byte: &u8| match byte {
        b',' | b':' | b'[' => VALUE_BYTES,
        b'{' => OBJECT_BYTES,
        _ => 0,
    };
    let weight = text.len() + VALUE_BYTES + text.iter().map(bytes).sum::<usize>();
    weight.min(JsonLimits::REQUEST.memory_max(text))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use serde_json::Value;

    use super::*;
    use crate::domain::access::caller::KeyKind;

    fn bodies() -> BodyMemory {
        BodyMemory::new(BodyMemoryLimits { process_max: 100_000, account_max: 40_000 })
    }

    fn account(id: impl Into<Option<i64>>) -> Option<KeyOwner> {
        id.into().map(|id| KeyOwner { kind: KeyKind::Taxpayer, id })
    }

    #[actix_web::test]
    async fn an_account_takes_no_more_than_its_share() {
        let bodies = bodies();
        let mut first = bodies.text(account(1), 30_000).await.unwrap();
        assert!(bodies.text(account(1), 20_000).now_or_never().is_none(), "it waits");
        let refused = first.grow(20_000).unwrap_err();
        assert_eq!((refused.code, refused.retry_after), (ErrorCode::RateLimited, Some(RETRY_AFTER)));
        assert!(first.grow(10_000).is_ok());
        let mut second = bodies.text(account(2), 30_000).await.unwrap();
        let others = bodies.text(account(None), 30_000).await.unwrap();
        assert_eq!(second.grow(1_000).unwrap_err().code, ErrorCode::Overloaded, "the process has no more");
        drop((first, others));
        assert!(second.grow(10_000).is_ok());
        assert!(bodies.text(account(1), 40_000).now_or_never().is_some());
    }

    #[actix_web::test]
    async fn texts_and_values_take_nothing_of_each_other() {
        let bodies = bodies();
        let text = bodies.text(account(1), 40_000).await.unwrap();
        let values = bodies.values(account(1), b"{\"a\":1}").now_or_never();
        assert!(values.is_some_and(|values| values.is_ok()));
        drop(text);
        let many = format!("[{}]", "0,".repeat(2_000));
        assert_eq!(
            bodies.values(account(1), many.as_bytes()).await.unwrap_err().code,
            ErrorCode::PayloadTooLarge
        );
        let some = format!("[{}]", "0,".repeat(600));
        assert!(
            bodies.values(account(1), some.as_bytes()).await.is_ok(),
            "more than a share takes all of it"
        );
    }

    #[actix_web::test]
    async fn turns_come_as_others_go() {
        let bodies = bodies();
        let mut taken = Vec::new();
        for _ in 0..BULK_TURNS {
            taken.push(bodies.bulk_turn().await.unwrap());
        }
        let mut next = Box::pin(bodies.bulk_turn());
        assert!(futures_util::poll!(&mut next).is_pending());
        taken.pop();
        assert!(next.await.is_ok());
    }

    /// Counts the bytes that a parsed value really takes, to compare them with the estimate of `weight`.
    fn bytes_of(value: &Value) -> usize {
        let own = size_of::<Value>();
        own + match value {
            Value::Null | Value::Bool(_) => 0,
            Value::Number(number) => number.to_string().len().next_multiple_of(8),
            Value::String(text) => text.capacity().next_multiple_of(8),
            Value::Array(values) => {
                (values.capacity() - values.len()) * own + values.iter().map(bytes_of).sum::<usize>()
            }
            // A node of the library's B-tree has room for eleven members.
            Value::Object(members) => {
                let node = 11 * (size_of::<String>() + own) + 16;
                let of = |(name, value): (&String, &Value)| name.len().next_multiple_of(8) + bytes_of(value);
                members.len().div_ceil(6) * node + members.iter().map(of).sum::<usize>()
            }
        }
    }

    #[test]
    fn no_text_becomes_more_than_its_weight() {
        let list = |item: &str| format!("[{}]", vec![item; 3_000].join(","));
        let members: Vec<_> = (0..3_000).map(|number| format!("\"{number}\":0")).collect();
        for text in [
            list("0"),
            list("[]"),
            list("[0]"),
            list("{}"),
            list("{\"\":0}"),
            list("[[[[]]]]"),
            list("\"\""),
            list("{\"\":{\"\":[0]}}"),
            format!("{{{}}}", members.join(",")),
            format!("\"{}\"", "x".repeat(10_000)),
            list("{\"description\":\"A laptop\",\"quantity\":2,\"unit_price\":500.25}"),
        ] {
            // The JSON reader refuses some of these texts, because their values take too much memory.
            let Ok(value) = strict_json::read(text.as_bytes(), JsonLimits::REQUEST, |_| {}) else { continue };
            let (real, weight) = (bytes_of(&value), weight(text.as_bytes()));
            assert!(real <= weight, "{real} > {weight}: {}", &text[..40]);
        }
    }
}
