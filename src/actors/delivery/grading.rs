//! The battery of tests that grades an endpoint: right messages and wrong ones, one after the other, each a test
//! notification that says so. As of the plain test nothing is kept: no event of the log, no delivery, no change of
//! the endpoint. What the answers are worth is `webhook::grade`'s to say.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::actors::delivery::endpoint_worker::DeliveryDeps;
use crate::actors::delivery::target::DeliveryTarget;
use crate::actors::delivery::test_delivery::{TestDeliveryError, test_event};
use crate::domain::events::event::Event;
use crate::domain::kernel::clock;
use crate::domain::kernel::ids::TaxpayerId;
use crate::webhook::{self, Attempt, Check, Graded, Message, Post, Secret};

/// How long the battery may take in all.
const LIMIT: Duration = Duration::from_mins(1);
/// How old the event of a delayed message is.
const DELAY: Duration = Duration::from_hours(72);
/// How old the timestamp of an old message is: twice what the standard suggests to tolerate.
const AGE: Duration = Duration::from_mins(10);
/// What fills a large message.
const LARGE_BYTES: usize = 200 * 1_024;

/// What came of grading an endpoint.
#[derive(Debug)]
pub enum GradingOutcome {
    Graded(Graded),
    /// The first message had no answer; the others were not sent.
    Unanswered(Attempt),
}

/// Whom it is sent to, and what every message of a battery shares.
struct Battery {
    to: DeliveryTarget,
    first: Event,
    /// What the messages speak of.
    subject: String,
    left: Duration,
}

/// How a message is made wrong, if it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Signing {
    Right,
    WithAnother,
    Absent,
    Old,
}

impl DeliveryDeps {
    /// Sends the battery to the endpoint of a taxpayer, whether it is in service or not.
    pub async fn grade(&self, taxpayer: TaxpayerId) -> Result<GradingOutcome, TestDeliveryError> {
        let now = self.clock.now();
        let to = self.tested(taxpayer, now).await?;
        let subject = format!("test-{}", clock::new_id());
        let first = test_event(&to.endpoint, (0, now), said(Check::Good, &subject));
        let mut battery = Battery { to, first, subject, left: LIMIT };
        let mut answers = Vec::new();
        for check in Check::ALL.iter().copied().filter(|check| *check != Check::Speed) {
            let answer = self.ask(&mut battery, check).await;
            match (check, &answer) {
                (Check::Good, Some(attempt)) if attempt.status.is_none() => {
                    return Ok(GradingOutcome::Unanswered(attempt.clone()));
                }
                _ => answers.push((check, answer)),
            }
        }
        let graded = webhook::graded(&answers, self.client.timeout());
        tracing::debug!(%taxpayer, grade = %graded.grade, score = graded.score, "graded a webhook");
        Ok(GradingOutcome::Graded(graded))
    }

    /// Sends the messages of a check; the worst answer, or none where the time ended before all of them had one.
    async fn ask(&self, battery: &mut Battery, check: Check) -> Option<Attempt> {
        let mut worst: Option<Attempt> = None;
        for (event, signing) in battery.messages(check, self.clock.now()) {
            if battery.left.is_zero() {
                return None;
            }
            let sent = self.send_wrong_or_right(battery, &event, signing);
            let Ok(attempt) = tokio::time::timeout(battery.left, sent).await else {
                battery.left = Duration::ZERO;
                return None;
            };
            battery.left = battery.left.saturating_sub(attempt.duration);
            worst = Some(match worst {
                Some(before) => worse(before, attempt),
                None => attempt,
            });
        }
        worst
    }

    async fn send_wrong_or_right(&self, battery: &Battery, event: &Event, signing: Signing) -> Attempt {
        let age = if signing == Signing::Old { AGE } else { Duration::ZERO };
        let at = self.clock.now().saturating_sub(age).unwrap_or(Timestamp::MIN);
        let sign = |message: &Message<'_>| {
            let mut headers = match signing {
                Signing::WithAnother => message.headers(&[Secret::generate(&mut clock::chance())]),
                Signing::Right | Signing::Absent | Signing::Old => message.headers(&battery.to.secrets),
            };
            headers.retain(|(name, _)| signing != Signing::Absent || *name != "webhook-signature");
            headers
        };
        self.send(&battery.to, event, (at, Post::KEPT_FOR_LOG), sign).await
    }
}

impl Battery {
    fn messages(&self, check: Check, now: Timestamp) -> Vec<(Event, Signing)> {
        let made =
            |sequence, moment| test_event(&self.to.endpoint, (sequence, moment), said(check, &self.subject));
        let plain = || made(0, now);
        match check {
            Check::Good | Check::Duplicate => vec![(self.first.clone(), Signing::Right)],
            Check::Reordered => vec![(made(2, now), Signing::Right), (made(1, now), Signing::Right)],
            Check::Delayed => {
                let then = now.saturating_sub(DELAY).unwrap_or(Timestamp::MIN);
                vec![(made(0, then), Signing::Right)]
            }
            Check::BadSignature => vec![(plain(), Signing::WithAnother)],
            Check::MissingSignature => vec![(plain(), Signing::Absent)],
            Check::OldTimestamp => vec![(plain(), Signing::Old)],
            Check::LargeBody => {
                let mut said = said(check, &self.subject);
                said["filler"] = Value::from("x".repeat(LARGE_BYTES));
                vec![(test_event(&self.to.endpoint, (0, now), said), Signing::Right)]
            }
            Check::Speed => Vec::new(),
        }
    }
}

fn said(check: Check, subject: &str) -> Value {
    json!({ "check": check, "subject": subject })
}

/// The one that was not taken; of two alike the slower.
fn worse(one: Attempt, other: Attempt) -> Attempt {
    match (one.is_delivered(), other.is_delivered()) {
        (false, true) => one,
        (true, false) => other,
        _ if one.duration >= other.duration => one,
        _ => other,
    }
}
