//! Limits the memory of answers that are ready and wait until their callers read them: for the process, for each
//! integrator with its taxpayers, and for each key. A large answer holds its part of the budget, and its place among
//! the calls in flight, until it is sent.

use std::num::NonZero;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::available_parallelism;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::web::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::domain::access::api_key::KeyOwner;
use crate::domain::access::caller::KeyKind;
use crate::domain::access::payer::Payer;
use crate::domain::kernel::ids::TaxpayerId;
use crate::http::limits::RateKey;
use crate::http::limits::concurrent_calls::CallSlot;
use crate::http::limits::keyed_semaphores::KeyedSemaphores;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::{ApiError, RETRY_AFTER};

/// An answer up to this size is not counted, because the operating system buffers all of it at once.
const UNCOUNTED_BYTES_MAX: usize = 64 * 1024;
/// A large answer is handed to the framework in parts of this size. So the framework does not copy the whole answer,
/// and the memory of the answer is free once it is sent.
pub(crate) const PART_BYTES: usize = 64 * 1024;
/// The longest time that a part of a list waits for memory. Clients that read nothing are disconnected sooner, which
/// frees memory.
const MEMORY_WAIT_MAX: Duration = Duration::from_mins(1);

/// The memory that answers may take, in bytes: of all accounts together, of one integrator with its taxpayers, and of
/// one key's account.
#[derive(Debug, Clone, Copy)]
pub struct AnswerMemoryLimits {
    pub process_max: usize,
    pub integrator_max: usize,
    pub account_max: usize,
}

#[derive(Debug)]
pub struct AnswerMemory {
    process: Arc<Semaphore>,
    payers: KeyedSemaphores<Payer>,
    callers: KeyedSemaphores<RateKey>,
    process_bytes: usize,
    /// Limits the number of parts of lists that are loaded and rendered at the same time.
    rendering_turns: Semaphore,
}

/// The memory reserved for an answer. Dropping this value releases the memory.
#[derive(Debug)]
pub(crate) struct AnswerPermit {
    _caller: OwnedSemaphorePermit,
    _payer: Option<OwnedSemaphorePermit>,
    _process: OwnedSemaphorePermit,
}

/// The caller that an answer is for, and the payer: the account whose shared limit the answer counts against. There is
/// no payer for a caller without a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerHolder {
    pub(crate) caller: RateKey,
    pub(crate) payer: Option<Payer>,
}

impl AnswerHolder {
    /// Returns the holder of the answers to requests with a taxpayer's key and of the files that its contact persons
    /// open.
    pub(crate) fn for_taxpayer(taxpayer: TaxpayerId, payer: Option<Payer>) -> Self {
        let owner = KeyOwner {
            kind: KeyKind::Taxpayer,
            id: taxpayer.0,
        };
        Self {
            caller: RateKey::Account(owner),
            payer,
        }
    }
}

/// A call whose answer is ready.
#[derive(Debug)]
pub(crate) struct AnsweredCall {
    pub(crate) holder: AnswerHolder,
    pub(crate) slot: Option<CallSlot>,
    pub(crate) is_read: bool,
}

impl AnswerMemory {
    pub fn new(limits: AnswerMemoryLimits) -> Self {
        Self {
            process: Arc::new(Semaphore::new(limits.process_max)),
            payers: KeyedSemaphores::new(limits.integrator_max),
            callers: KeyedSemaphores::new(limits.account_max),
            process_bytes: limits.process_max,
            rendering_turns: Semaphore::new(available_parallelism().map_or(1, NonZero::get)),
        }
    }

    /// Waits until the caller may load and render a part of a list. The turn lasts until the permit is dropped. No more
    /// parts are loaded at once than there are cores, because a loaded invoice takes ten times the memory of its text.
    pub(crate) async fn wait_for_rendering_turn(&self) -> Option<SemaphorePermit<'_>> {
        // Fails only if the semaphore is closed, which it never is.
        self.rendering_turns.acquire().await.ok()
    }

    /// Reserves memory for an answer that is ready. If there is too little, fails at once, so that the answer is
    /// dropped and does not wait in memory.
    fn try_reserve(&self, holder: AnswerHolder, bytes: usize) -> Result<AnswerPermit, ApiError> {
        let caller = self
            .callers
            .for_holder(holder.caller)
            .try_acquire_many_owned(self.caller_permits(bytes));
        let caller = caller.map_err(|_| too_many_answers_error("this caller"))?;
        let payer = holder.payer.map(|payer| {
            self.payers
                .for_holder(payer)
                .try_acquire_many_owned(self.payer_permits(bytes))
        });
        let payer = payer
            .transpose()
            .map_err(|_| too_many_answers_error("this integrator and its taxpayers"))?;
        let process = Arc::clone(&self.process).try_acquire_many_owned(self.process_permits(bytes));
        let process = process.map_err(|_| {
            let message = "Too many answers are waiting to be read, please try again";
            ApiError::new(ErrorCode::Overloaded, message).with_retry_after(RETRY_AFTER)
        })?;
        Ok(AnswerPermit {
            _caller: caller,
            _payer: payer,
            _process: process,
        })
    }

    /// Returns the bytes that one caller gets at most, whatever its payer.
    pub(crate) fn smallest_share_bytes(&self) -> usize {
        self.process_bytes
            .min(self.payers.size())
            .min(self.callers.size())
    }

    /// Reserves memory for a part of an answer that is not loaded yet. Returns `None` if too little becomes free within
    /// `MEMORY_WAIT_MAX`.
    pub(crate) async fn reserve(&self, holder: AnswerHolder, bytes: usize) -> Option<AnswerPermit> {
        let permit = async {
            let caller = self
                .callers
                .for_holder(holder.caller)
                .acquire_many_owned(self.caller_permits(bytes))
                .await
                .ok()?;
            let payer = match holder.payer {
                Some(payer) => Some(
                    self.payers
                        .for_holder(payer)
                        .acquire_many_owned(self.payer_permits(bytes))
                        .await
                        .ok()?,
                ),
                None => None,
            };
            let process = Arc::clone(&self.process)
                .acquire_many_owned(self.process_permits(bytes))
                .await
                .ok()?;
            Some(AnswerPermit {
                _caller: caller,
                _payer: payer,
                _process: process,
            })
        };
        timeout(MEMORY_WAIT_MAX, permit).await.ok().flatten()
    }

    /// Makes a large answer hold its memory and the slot of its call until it is sent. Refuses the answer if there is
    /// too little memory, except the answer to a write, because the write has been made.
    pub(crate) fn hold_until_sent(
        &self,
        call: AnsweredCall,
        answer: HttpResponse,
    ) -> Result<HttpResponse, ApiError> {
        let bytes = match answer.body().size() {
            BodySize::Sized(bytes) => usize::try_from(bytes).unwrap_or(usize::MAX),
            BodySize::None => 0,
            BodySize::Stream => {
                return Ok(answer.map_body(|_, body| {
                    BoxBody::new(BodyWithCallSlot {
                        body,
                        _slot: call.slot,
                    })
                }));
            }
        };
        if bytes <= UNCOUNTED_BYTES_MAX {
            return Ok(answer);
        }
        let permit = match self.try_reserve(call.holder, bytes) {
            Ok(permit) => Some(permit),
            Err(_) if !call.is_read => None,
            Err(refusal) => return Err(refusal),
        };
        Ok(answer.map_body(|_, body| match body.try_into_bytes() {
            Ok(unsent) => BoxBody::new(ChunkedBody {
                unsent,
                _permit: permit,
                _slot: call.slot,
            }),
            Err(body) => body,
        }))
    }

    /// Returns the number of permits that an answer takes from the share of its caller. An answer larger than the share
    /// takes the whole share.
    fn caller_permits(&self, bytes: usize) -> u32 {
        to_permits(bytes.min(self.callers.size()))
    }

    fn payer_permits(&self, bytes: usize) -> u32 {
        to_permits(bytes.min(self.payers.size()))
    }

    fn process_permits(&self, bytes: usize) -> u32 {
        to_permits(bytes.min(self.process_bytes))
    }
}

fn too_many_answers_error(whose: &str) -> ApiError {
    let message = format!("Too many answers to {whose} are waiting to be read, please try again");
    ApiError::new(ErrorCode::RateLimited, message).with_retry_after(RETRY_AFTER)
}

/// Converts bytes to a number of permits. The settings keep every value below `u32::MAX`.
fn to_permits(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// A body that is handed to the framework in parts, and holds its memory until it is sent.
struct ChunkedBody {
    unsent: Bytes,
    _permit: Option<AnswerPermit>,
    _slot: Option<CallSlot>,
}

impl MessageBody for ChunkedBody {
    type Error = std::convert::Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.unsent.len() as u64)
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let length = self.unsent.len().min(PART_BYTES);
        Poll::Ready((length > 0).then(|| Ok(self.unsent.split_to(length))))
    }
}

/// A stream that counts its call as in flight until the stream has ended.
struct BodyWithCallSlot {
    body: BoxBody,
    _slot: Option<CallSlot>,
}

impl MessageBody for BodyWithCallSlot {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(context)
    }
}

#[cfg(test)]
mod tests {
    use actix_web::body::to_bytes;

    use super::*;
    use crate::domain::kernel::ids::IntegratorId;

    const LIMITS: AnswerMemoryLimits = AnswerMemoryLimits {
        process_max: 3 * UNCOUNTED_BYTES_MAX,
        integrator_max: 3 * UNCOUNTED_BYTES_MAX,
        account_max: 2 * UNCOUNTED_BYTES_MAX,
    };

    fn holder(number: u8) -> AnswerHolder {
        AnswerHolder {
            caller: RateKey::new(None, Some([10, 0, 0, number].into())),
            payer: None,
        }
    }

    fn hold(memory: &AnswerMemory, number: u8, bytes: usize) -> Result<HttpResponse, ErrorCode> {
        let call = AnsweredCall {
            holder: holder(number),
            slot: None,
            is_read: true,
        };
        memory
            .hold_until_sent(call, HttpResponse::Ok().body(vec![b'x'; bytes]))
            .map_err(|error| error.code)
    }

    #[actix_web::test]
    async fn the_answer_to_a_write_is_never_refused() {
        let memory = AnswerMemory::new(LIMITS);
        let _first = hold(&memory, 1, 2 * UNCOUNTED_BYTES_MAX).unwrap();
        let write = AnsweredCall {
            holder: holder(1),
            slot: None,
            is_read: false,
        };
        assert!(
            memory
                .hold_until_sent(
                    write,
                    HttpResponse::Created().body(vec![b'x'; 2 * UNCOUNTED_BYTES_MAX])
                )
                .is_ok()
        );
        assert!(hold(&memory, 1, 2 * UNCOUNTED_BYTES_MAX).is_err());
    }

    #[actix_web::test]
    async fn an_answer_holds_its_memory_until_it_is_sent() {
        let memory = AnswerMemory::new(LIMITS);
        let first = hold(&memory, 1, 2 * UNCOUNTED_BYTES_MAX).unwrap();
        assert_eq!(
            hold(&memory, 1, UNCOUNTED_BYTES_MAX + 1).unwrap_err(),
            ErrorCode::RateLimited
        );
        assert!(
            hold(&memory, 1, UNCOUNTED_BYTES_MAX).is_ok(),
            "a small answer is not counted"
        );
        assert_eq!(
            hold(&memory, 2, UNCOUNTED_BYTES_MAX + 1).unwrap_err(),
            ErrorCode::Overloaded
        );
        assert_eq!(
            to_bytes(first.into_body()).await.unwrap().len(),
            2 * UNCOUNTED_BYTES_MAX
        );
        assert!(hold(&memory, 1, UNCOUNTED_BYTES_MAX + 1).is_ok());
    }

    #[actix_web::test]
    async fn the_taxpayers_of_an_integrator_share_its_part() {
        let memory = AnswerMemory::new(AnswerMemoryLimits {
            process_max: 9 * UNCOUNTED_BYTES_MAX,
            integrator_max: 3 * UNCOUNTED_BYTES_MAX,
            account_max: 2 * UNCOUNTED_BYTES_MAX,
        });
        let take = |integrator, number| {
            let payer = Some(Payer::Integrator(IntegratorId(integrator)));
            memory.try_reserve(
                AnswerHolder {
                    payer,
                    ..holder(number)
                },
                2 * UNCOUNTED_BYTES_MAX,
            )
        };
        let first = take(1, 1).unwrap();
        assert_eq!(take(1, 2).unwrap_err().code, ErrorCode::RateLimited);
        assert!(take(2, 3).is_ok(), "another integrator has its own");
        drop(first);
        assert!(take(1, 2).is_ok());
    }

    #[actix_web::test]
    async fn an_answer_that_is_larger_than_its_share_takes_the_whole_share() {
        let memory = AnswerMemory::new(LIMITS);
        let large = hold(&memory, 1, 5 * UNCOUNTED_BYTES_MAX).unwrap();
        assert_eq!(
            large.body().size(),
            BodySize::Sized(5 * UNCOUNTED_BYTES_MAX as u64)
        );
        assert!(hold(&memory, 1, UNCOUNTED_BYTES_MAX + 1).is_err());
        drop(large);
        assert!(hold(&memory, 1, UNCOUNTED_BYTES_MAX + 1).is_ok());
    }

    #[actix_web::test]
    async fn a_part_of_a_list_waits_until_the_part_before_it_is_sent() {
        let memory = AnswerMemory::new(LIMITS);
        let first = memory
            .reserve(holder(1), 2 * UNCOUNTED_BYTES_MAX)
            .await
            .unwrap();
        let second = memory.reserve(holder(1), UNCOUNTED_BYTES_MAX);
        let (second, ()) = tokio::join!(second, async { drop(first) });
        assert!(second.is_some());
    }
}
