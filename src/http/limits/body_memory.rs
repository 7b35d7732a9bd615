//! Limits the memory of request bodies: for the process, for each integrator and for each key. Texts and parsed values
//! have separate budgets: in a common one, texts could take all the memory, and their requests would wait forever for
//! memory for the values.
//!
//! When its first bytes arrive, a body takes its whole length from the shares of its key and its integrator. It takes
//! memory of the process only as more bytes arrive, so a request that sends nothing takes nothing from others. A
//! quarter of each budget is for small bodies only: large ones never take it.

use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use strict_json::JsonLimits;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::actors::turn_gate::{BudgetPortion, TurnGate};
use crate::domain::access::api_key::KeyOwner;
use crate::domain::access::payer::{Payer, PayingAccount};
use crate::http::limits::keyed_semaphores::KeyedSemaphores;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::{ApiError, RETRY_AFTER};

/// The largest body that counts as small, and the first part of any body for which memory is reserved.
pub(crate) const SMALL_BODY_BYTES_MAX: usize = 64 * 1024;
/// A quarter of each budget is for small bodies.
const SMALL_BUDGET_DIVISOR: usize = 4;
/// The longest time that a request waits for memory before it is refused.
const MEMORY_WAIT_MAX: Duration = Duration::from_secs(10);
/// The number of bulk requests that are processed at the same time.
const CONCURRENT_BULK_MAX: usize = 4;
/// The longest time that a request waits for its turn before it is refused.
const TURN_WAIT_MAX: Duration = Duration::from_secs(30);

/// The maximum size of one parsed value, with its digits or its name, and with the spare capacity of the array or
/// object that holds it.
const VALUE_BYTES_MAX: usize = 96;
/// The bytes of an object, not including the object's members.
const OBJECT_BYTES: usize = 640;

/// The memory that request bodies may take, in bytes: of all accounts together, of one integrator with its taxpayers,
/// and of one key's account.
#[derive(Debug, Clone, Copy)]
pub struct BodyMemoryLimits {
    pub process_max: usize,
    pub integrator_max: usize,
    pub account_max: usize,
}

/// The memory budgets for the texts and for the parsed values of request bodies.
#[derive(Debug)]
pub struct BodyMemory {
    texts: BodyBudgets,
    values: BodyBudgets,
    bulk_turns: Arc<TurnGate>,
    reading_turns: Arc<TurnGate>,
}

#[derive(Debug)]
struct BodyBudgets {
    small: BodyBudget,
    large: BodyBudget,
}

/// A budget of the process, with a share for each integrator and each key. Requests without a key have one common
/// share.
#[derive(Debug)]
struct BodyBudget {
    process_bytes: usize,
    process: Arc<TurnGate>,
    integrators: KeyedSemaphores<Option<Payer>>,
    accounts: KeyedSemaphores<Option<KeyOwner>>,
}

/// The permits that a body has taken from the shares of its key and of its integrator.
#[derive(Debug)]
struct BodyShare {
    _account: OwnedSemaphorePermit,
    _integrator: OwnedSemaphorePermit,
}

/// The memory reserved for a body. Dropping this value releases the memory.
#[derive(Debug)]
pub(crate) struct BodyPermit {
    portion: BudgetPortion,
    _share: BodyShare,
}

/// Reserves memory for the text of one body as its bytes arrive.
#[derive(Debug)]
pub(crate) struct TextMemory {
    account: Option<PayingAccount>,
    /// The length that the request announced; `None` for a body in chunks.
    announced_length: Option<usize>,
    bytes_max: usize,
    reserved_bytes: usize,
    permit: Option<BodyPermit>,
}

impl BodyMemory {
    pub fn new(limits: BodyMemoryLimits) -> Self {
        let budget = |part: fn(usize) -> usize| BodyBudget {
            process_bytes: part(limits.process_max),
            process: TurnGate::new(part(limits.process_max)),
            integrators: KeyedSemaphores::new(part(limits.integrator_max)),
            accounts: KeyedSemaphores::new(part(limits.account_max)),
        };
        let budgets = || BodyBudgets {
            small: budget(|bytes| bytes / SMALL_BUDGET_DIVISOR),
            large: budget(|bytes| bytes - bytes / SMALL_BUDGET_DIVISOR),
        };
        Self {
            texts: budgets(),
            values: budgets(),
            bulk_turns: TurnGate::new(CONCURRENT_BULK_MAX),
            reading_turns: TurnGate::new(concurrent_readings_max()),
        }
    }

    /// Reserves memory for the parsed values of this text. Waits at most `MEMORY_WAIT_MAX`.
    pub(crate) async fn reserve_for_values(
        &self,
        account: Option<PayingAccount>,
        text: &[u8],
    ) -> Result<BodyPermit, ApiError> {
        self.reserve(account, text.len(), estimate_parsed_bytes(text))
            .await
    }

    /// Reserves `bytes` for the values of a body whose text has this `length`. Waits at most `MEMORY_WAIT_MAX`.
    pub(crate) async fn reserve(
        &self,
        account: Option<PayingAccount>,
        length: usize,
        bytes: usize,
    ) -> Result<BodyPermit, ApiError> {
        let budget = self.values.budget_for_text(length);
        budget.reserve(account, bytes, bytes).await
    }

    /// Waits until a bulk request may be processed. Integrators take turns.
    pub(crate) async fn wait_for_bulk_turn(
        &self,
        account: Option<PayingAccount>,
    ) -> Result<BudgetPortion, ApiError> {
        let message = "Too many bulk requests are under way, please try again";
        take_turn(&self.bulk_turns, account, message).await
    }

    /// Waits until a large body may be parsed. Integrators take turns.
    pub(crate) async fn wait_for_reading_turn(
        &self,
        account: Option<PayingAccount>,
    ) -> Result<BudgetPortion, ApiError> {
        let message = "Too many large requests are under way, please try again";
        take_turn(&self.reading_turns, account, message).await
    }
}

async fn take_turn(
    gate: &Arc<TurnGate>,
    account: Option<PayingAccount>,
    message: &str,
) -> Result<BudgetPortion, ApiError> {
    let payer = account.map(PayingAccount::payer);
    let turn = timeout(TURN_WAIT_MAX, gate.take(payer, 1)).await;
    turn.map_err(|_| ApiError::new(ErrorCode::Overloaded, message).with_retry_after(RETRY_AFTER))
}

/// The number of large bodies that are parsed at the same time: half of the processors are left to everything else.
fn concurrent_readings_max() -> usize {
    available_parallelism()
        .map_or(1, |processors| processors.get() / 2)
        .max(1)
}

impl BodyBudgets {
    /// Returns the budget for a text of this length and for its values.
    fn budget_for_text(&self, length: usize) -> &BodyBudget {
        if length <= SMALL_BODY_BYTES_MAX {
            &self.small
        } else {
            &self.large
        }
    }
}

impl BodyBudget {
    /// Reserves `bytes` of the memory of the process for a body that takes `whole` from the shares of its key and
    /// integrator.
    async fn reserve(
        &self,
        account: Option<PayingAccount>,
        whole: usize,
        bytes: usize,
    ) -> Result<BodyPermit, ApiError> {
        if bytes > self.process_bytes {
            let message = "The request body holds more values than the service can work on";
            return Err(ApiError::new(ErrorCode::PayloadTooLarge, message));
        }
        let share = timeout(MEMORY_WAIT_MAX, self.take_share(account, whole)).await;
        let share = share.ok().flatten().ok_or_else(share_memory_full_error)?;
        let payer = account.map(PayingAccount::payer);
        let portion = timeout(MEMORY_WAIT_MAX, self.process.take(payer, bytes)).await;
        Ok(BodyPermit {
            portion: portion.map_err(|_| process_memory_full_error())?,
            _share: share,
        })
    }

    /// Takes `whole` bytes from the shares of the key and its integrator. A body larger than a share takes all of it.
    async fn take_share(&self, account: Option<PayingAccount>, whole: usize) -> Option<BodyShare> {
        let (owner, payer) = (
            account.map(|account| account.owner),
            account.map(PayingAccount::payer),
        );
        let account_permits = to_permits(whole.min(self.accounts.size()));
        let account = self
            .accounts
            .for_holder(owner)
            .acquire_many_owned(account_permits)
            .await
            .ok()?;
        let integrator_permits = to_permits(whole.min(self.integrators.size()));
        let integrator = self
            .integrators
            .for_holder(payer)
            .acquire_many_owned(integrator_permits)
            .await
            .ok()?;
        Some(BodyShare {
            _account: account,
            _integrator: integrator,
        })
    }
}

impl TextMemory {
    /// Prepares for a body of the announced length, or of at most `bytes_max`. Reserves nothing yet.
    pub(crate) fn new(
        account: Option<PayingAccount>,
        announced_length: Option<usize>,
        bytes_max: usize,
    ) -> Self {
        Self {
            account,
            announced_length,
            bytes_max,
            reserved_bytes: 0,
            permit: None,
        }
    }

    /// Reserves memory for the first `length` bytes, which have arrived. Returns the number of bytes that are reserved
    /// now: at most twice `length`, or `SMALL_BODY_BYTES_MAX`. Waits at most `MEMORY_WAIT_MAX` for the shares, and
    /// again for the memory of the process.
    pub(crate) async fn reserve_up_to(
        &mut self,
        memory: &BodyMemory,
        length: usize,
    ) -> Result<usize, ApiError> {
        if length <= self.reserved_bytes {
            return Ok(self.reserved_bytes);
        }
        let whole = match self.announced_length {
            Some(announced) => announced.min(self.bytes_max),
            None if length <= SMALL_BODY_BYTES_MAX => SMALL_BODY_BYTES_MAX,
            None => self.bytes_max,
        };
        let size = length
            .max(2 * self.reserved_bytes)
            .max(SMALL_BODY_BYTES_MAX)
            .min(whole)
            .max(length);
        // A body in chunks that proves not to be small moves from the budget of small bodies to that of large ones.
        let is_outgrown =
            self.announced_length.is_none() && self.reserved_bytes == SMALL_BODY_BYTES_MAX;
        match &mut self.permit {
            Some(permit) if !is_outgrown => {
                let grown = timeout(
                    MEMORY_WAIT_MAX,
                    permit.portion.grow(size - self.reserved_bytes),
                )
                .await;
                grown.map_err(|_| process_memory_full_error())?;
            }
            _ => {
                self.permit = None;
                self.permit = Some(
                    memory
                        .texts
                        .budget_for_text(whole)
                        .reserve(self.account, whole, size)
                        .await?,
                );
            }
        }
        self.reserved_bytes = size;
        Ok(size)
    }

    /// Returns the reserved memory; `None` for an empty body.
    pub(crate) fn into_permit(self) -> Option<BodyPermit> {
        self.permit
    }
}

/// Converts bytes to a number of permits. The settings keep every value below `u32::MAX`.
fn to_permits(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn share_memory_full_error() -> ApiError {
    let message = "Too much is being sent with the keys of this integrator at the same time, please try again";
    ApiError::new(ErrorCode::RateLimited, message).with_retry_after(RETRY_AFTER)
}

fn process_memory_full_error() -> ApiError {
    let message = "Too much is being sent at the same time, please try again";
    ApiError::new(ErrorCode::Overloaded, message).with_retry_after(RETRY_AFTER)
}

/// Estimates the bytes of a parsed text. Every value except the first follows a comma, a colon or a bracket. These also
/// occur within strings, so the estimate may be too high, but never too low.
fn estimate_parsed_bytes(text: &[u8]) -> usize {
    estimate_value_bytes(text).min(JsonLimits::REQUEST.memory_bytes_max(text))
}

/// Estimates the bytes of the parsed values of one or several JSON texts by counting commas, colons and brackets.
pub(crate) fn estimate_value_bytes(text: &[u8]) -> usize {
    let sizes = text.iter().map(|byte| match byte {
        b',' | b':' | b'[' => VALUE_BYTES_MAX,
        b'{' => OBJECT_BYTES,
        _ => 0,
    });
    text.len() + VALUE_BYTES_MAX + sizes.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use serde_json::Value;

    use super::*;
    use crate::domain::access::caller::KeyKind;
    use crate::domain::kernel::ids::IntegratorId;

    const KIB: usize = 1024;

    /// Returns budgets for large bodies of 512 KiB for the process, 384 KiB for an integrator and 192 KiB for a key.
    fn bodies() -> BodyMemory {
        let part = |kib: usize| kib * KIB / 3 * 4;
        BodyMemory::new(BodyMemoryLimits {
            process_max: part(512 + 1),
            integrator_max: part(384),
            account_max: part(192),
        })
    }

    /// Returns the account of a taxpayer's key; `None` for a request without a key.
    fn account(integrator: i64, id: impl Into<Option<i64>>) -> Option<PayingAccount> {
        let integrator = Some(IntegratorId(integrator));
        let owner = |id| KeyOwner {
            kind: KeyKind::Taxpayer,
            id,
        };
        id.into().map(|id| PayingAccount {
            integrator,
            owner: owner(id),
        })
    }

    /// Reserves memory for a body of which `arrived` bytes have arrived. Returns `None` if this would have to wait.
    fn receive(
        bodies: &BodyMemory,
        account: Option<PayingAccount>,
        announced: impl Into<Option<usize>>,
        arrived: usize,
    ) -> Option<TextMemory> {
        let mut memory = TextMemory::new(account, announced.into(), 2 * 1024 * KIB);
        memory
            .reserve_up_to(bodies, arrived)
            .now_or_never()?
            .unwrap();
        Some(memory)
    }

    #[actix_web::test]
    async fn memory_is_reserved_as_bytes_arrive() {
        let bodies = bodies();
        let mut memory = TextMemory::new(account(1, 1), Some(192 * KIB), 192 * KIB);
        let mut sizes = Vec::new();
        for arrived in [1, 64 * KIB, 64 * KIB + 1, 129 * KIB, 192 * KIB] {
            sizes.push(memory.reserve_up_to(&bodies, arrived).await.unwrap() / KIB);
        }
        assert_eq!(sizes, [64, 64, 128, 192, 192]);
        let mut chunked = TextMemory::new(account(2, 2), None, 100 * KIB);
        assert_eq!(
            chunked.reserve_up_to(&bodies, 10).await.unwrap(),
            SMALL_BODY_BYTES_MAX
        );
        assert_eq!(
            chunked
                .reserve_up_to(&bodies, SMALL_BODY_BYTES_MAX + 1)
                .await
                .unwrap(),
            100 * KIB,
            "the body is not small"
        );
        assert!(
            TextMemory::new(account(1, 1), Some(0), 100)
                .into_permit()
                .is_none()
        );
    }

    #[actix_web::test]
    async fn a_key_and_an_integrator_take_no_more_than_their_shares() {
        let bodies = bodies();
        let first = receive(&bodies, account(1, 1), 192 * KIB, 1).unwrap();
        assert!(
            receive(&bodies, account(1, 1), 100 * KIB, 1).is_none(),
            "the key has its share"
        );
        let second = receive(&bodies, account(1, 2), 192 * KIB, 1).unwrap();
        assert!(
            receive(&bodies, account(1, 3), 100 * KIB, 1).is_none(),
            "the integrator has its share"
        );
        assert!(receive(&bodies, account(2, 4), 192 * KIB, 192 * KIB).is_some());
        drop((first, second));
        assert!(receive(&bodies, account(1, 3), 100 * KIB, 1).is_some());
    }

    #[actix_web::test]
    async fn bodies_that_only_begin_take_nothing_from_other_integrators() {
        let bodies = bodies();
        let begun: Vec<_> = (0..40)
            .filter_map(|id| receive(&bodies, account(id / 4, id), 1024 * KIB, 1))
            .collect();
        assert!(
            begun.len() >= 8,
            "each has reserved one part: {}",
            begun.len()
        );
        assert!(
            receive(&bodies, account(99, 99), 20 * KIB, 20 * KIB).is_some(),
            "a small body has its own"
        );
    }

    #[actix_web::test]
    async fn large_bodies_leave_the_budget_of_small_ones_alone() {
        let bodies = bodies();
        let large: Vec<_> = (0..8)
            .filter_map(|id| receive(&bodies, account(id, id), 192 * KIB, 192 * KIB))
            .collect();
        assert_eq!(large.len(), 2, "and a third waits for the process");
        for id in 0..8 {
            assert!(receive(&bodies, account(id, id), 10 * KIB, 10 * KIB).is_some());
        }
        assert!(receive(&bodies, account(9, None), 10 * KIB, 10 * KIB).is_some());
    }

    #[actix_web::test]
    async fn texts_and_values_take_nothing_of_each_other() {
        let bodies = bodies();
        let _text = receive(&bodies, account(1, 1), 192 * KIB, 192 * KIB).unwrap();
        let many = format!("[{}]", "0,".repeat(33 * KIB));
        assert!(
            bodies
                .reserve_for_values(account(1, 1), b"{\"a\":1}")
                .now_or_never()
                .is_some_and(|values| values.is_ok())
        );
        assert_eq!(
            bodies
                .reserve_for_values(account(1, 1), many.as_bytes())
                .await
                .unwrap_err()
                .code,
            ErrorCode::PayloadTooLarge
        );
    }

    /// Takes all `places` for one integrator. Asserts that the next free place goes to another integrator that waits.
    async fn assert_integrators_take_turns(
        places: usize,
        take: impl AsyncFn(Option<PayingAccount>) -> Result<BudgetPortion, ApiError>,
    ) {
        let mut taken = Vec::new();
        for _ in 0..places {
            taken.push(take(account(1, 1)).await.unwrap());
        }
        let mut same = Box::pin(take(account(1, 2)));
        let mut other = Box::pin(take(account(2, 3)));
        assert!(
            futures_util::poll!(&mut same).is_pending()
                && futures_util::poll!(&mut other).is_pending()
        );
        taken.pop();
        let _turn = other.await.unwrap();
        assert!(futures_util::poll!(&mut same).is_pending());
    }

    #[actix_web::test]
    async fn integrators_take_turns_with_bulk_requests_and_large_bodies() {
        let bodies = bodies();
        assert_integrators_take_turns(CONCURRENT_BULK_MAX, async |account| {
            bodies.wait_for_bulk_turn(account).await
        })
        .await;
        let places = concurrent_readings_max();
        assert_integrators_take_turns(places, async |account| {
            bodies.wait_for_reading_turn(account).await
        })
        .await;
    }

    /// Counts the bytes that a parsed value takes, to compare them with the estimate of `estimate_parsed_bytes`.
    fn counted_size(value: &Value) -> usize {
        let own = size_of::<Value>();
        own + match value {
            Value::Null | Value::Bool(_) => 0,
            Value::Number(number) => number.to_string().len().next_multiple_of(8),
            Value::String(text) => text.capacity().next_multiple_of(8),
            Value::Array(values) => {
                (values.capacity() - values.len()) * own
                    + values.iter().map(counted_size).sum::<usize>()
            }
            // A node of the library's B-tree has room for eleven members.
            Value::Object(members) => {
                let node = 11 * (size_of::<String>() + own) + 16;
                let member_size = |(name, value): (&String, &Value)| {
                    name.len().next_multiple_of(8) + counted_size(value)
                };
                members.len().div_ceil(6) * node + members.iter().map(member_size).sum::<usize>()
            }
        }
    }

    #[test]
    fn no_parsed_text_takes_more_memory_than_estimated() {
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
            let Ok(value) = strict_json::read(text.as_bytes(), JsonLimits::REQUEST, |_| {}) else {
                continue;
            };
            let real = counted_size(&value);
            let estimate = estimate_parsed_bytes(text.as_bytes());
            assert!(real <= estimate, "{real} > {estimate}: {}", &text[..40]);
        }
    }
}
