//! What became of a call whose outcome is not known, now or in an earlier life of this process. Nothing is guessed:
//! what the authority has signed under an IRN is ours only if its own copy holds what was sent.

use serde_json::Value;

use crate::actors::pipeline::steps::{Caller, Trouble};
use crate::actors::pipeline::witness::Sighting;
use crate::authority::{Cause, Failure};
use crate::domain::pipeline::{ResolvedBy, Run};
use crate::domain::signed_copy::{self, SIGNED_OTHERWISE};

/// How an effect that happened became known, or `None` where it did not happen.
pub(super) type Known = Result<Option<ResolvedBy>, Trouble>;

impl Caller<'_> {
    /// Whether an effect took place.
    pub(super) async fn happened(&self, run: &Run, happened: impl Fn(&Sighting) -> bool) -> Known {
        let sighting = self.witness(run, happened).await.map_err(Trouble::Call)?;
        Ok(sighting.map(|sighting| sighting.by))
    }

    /// Whether the authority has signed what the run sent. What somebody else let it sign is a refusal.
    pub(super) async fn signed(&self, run: &Run) -> Known {
        let Some(sighting) = self.witness(run, |_| true).await.map_err(Trouble::Call)? else { return Ok(None) };
        let is_ours = match self.copy(run).await? {
            Some(copy) => (ResolvedBy::Download, signed_copy::holds(&copy, &run.document)),
            None => (sighting.by, dates_agree(run, &sighting)?),
        };
        match is_ours {
            (by, true) => Ok(Some(by)),
            (_, false) => Err(Trouble::Refused(SIGNED_OTHERWISE.to_owned())),
        }
    }

    /// The authority's copy of what it has signed; `None` where it cannot be read, however often it is asked for.
    async fn copy(&self, run: &Run) -> Result<Option<Value>, Trouble> {
        let unreadable = match self.authority.download(run.irn.as_str()).await {
            Ok(document) => match self.authority.decrypt(&document) {
                Ok(copy) => return Ok(Some(copy)),
                Err(error) => error.to_string(),
            },
            Err(Failure::Refused { message, .. }) => message,
            Err(failure) => return Err(Trouble::Call(failure)),
        };
        let irn = run.irn.as_str();
        tracing::warn!(irn, error = unreadable, "a signed document cannot be read: its dates decide whose it is");
        Ok(None)
    }
}

/// Whether a document that cannot be read has the dates of the one that was sent.
fn dates_agree(run: &Run, sighting: &Sighting) -> Result<bool, Trouble> {
    let told = (sighting.issue_date.as_deref(), sighting.due_date.as_deref());
    let silence = Failure::Unknown { reason: Cause::Garbled { status: 200 } };
    signed_copy::agrees(&run.document, told.0, told.1).ok_or(Trouble::Call(silence))
}

/// How a call whose answer left its outcome open ended. Where it did not happen, or nobody could tell, the failure
/// stands: the question is asked again before the call is made again.
pub(super) fn settle(unknown: Failure, known: Known) -> Result<ResolvedBy, Trouble> {
    match known {
        Ok(Some(by)) => Ok(by),
        Ok(None) | Err(Trouble::Call(_)) => Err(unknown.into()),
        Err(trouble) => Err(trouble),
    }
}
