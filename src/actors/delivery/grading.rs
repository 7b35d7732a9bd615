//! Sends a series of test notifications to an endpoint, some valid and some invalid; `webhook_client` computes a grade
//! from the answers. Like the plain test (`test_delivery`), grading stores no event and no delivery and does not change
//! the endpoint.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use timing::clock;
use webhook_client::{AttemptResult, GradeCheck, GradeReport, PostRequest, SigningSecret};

use crate::actors::delivery::attempt::{DeliveryTarget, OutgoingEvent};
use crate::actors::delivery::deps::DeliveryDeps;
use crate::actors::delivery::test_delivery::{TestDeliveryError, test_event};
use crate::domain::events::event::Event;
use crate::domain::kernel::ids::EndpointKey;

/// The timeout of the whole series of messages.
const SERIES_TIMEOUT: Duration = Duration::from_mins(1);
/// The age of the event in the message that tests a delayed delivery.
const DELAYED_EVENT_AGE: Duration = Duration::from_hours(72);
/// The age of the timestamp in the message that tests an old timestamp. It is twice the tolerance of five minutes that
/// the webhook standard suggests.
const OLD_TIMESTAMP_AGE: Duration = Duration::from_mins(10);
/// The number of filler bytes in the message that tests a large body.
const FILLER_BYTES: usize = 200 * 1_024;
/// The explanation in the report for a receiver that refuses large messages.
const WHY_LARGE: &str = "A message carries the whole invoice";

#[derive(Debug)]
pub enum GradingOutcome {
    Graded(GradeReport),
    /// The first message got no response, so the other messages were not sent.
    Unanswered(AttemptResult),
}

/// The target of a series of test messages, and the data that the messages share.
struct TestSeries {
    to: DeliveryTarget,
    first: Event,
    /// The member `subject` in the data of all messages.
    subject: String,
    /// The time that is left until the timeout of the series.
    left: Duration,
}

/// The signature of a test message: correct, or wrong in one way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TestSignature {
    Right,
    WithOtherSecret,
    Absent,
    Old,
}

impl DeliveryDeps {
    /// Grades an endpoint, even if the endpoint is disabled.
    pub async fn grade(&self, endpoint: EndpointKey) -> Result<GradingOutcome, TestDeliveryError> {
        let now = self.clock.now();
        let to = self.test_target(endpoint, now).await?;
        let subject = format!("test-{}", clock::new_id());
        let first = test_event(
            &to.endpoint,
            0,
            now,
            data_for_check(GradeCheck::Good, &subject),
        );
        let mut series = TestSeries {
            to,
            first,
            subject,
            left: SERIES_TIMEOUT,
        };
        let mut answers = Vec::new();
        for check in GradeCheck::ALL
            .into_iter()
            .filter(|check| *check != GradeCheck::Speed)
        {
            let answer = self.run_check(&mut series, check).await;
            match (check, &answer) {
                (GradeCheck::Good, Some(attempt)) if attempt.status.is_none() => {
                    return Ok(GradingOutcome::Unanswered(attempt.clone()));
                }
                _ => answers.push((check, answer)),
            }
        }
        let graded = webhook_client::grade_answers(&answers, self.client.timeout(), WHY_LARGE);
        tracing::debug!(%endpoint, grade = %graded.grade, score = graded.score, "graded a webhook");
        Ok(GradingOutcome::Graded(graded))
    }

    /// Sends the messages of one check. Returns the worst of the answers, or `None` if the time for the series has run
    /// out.
    async fn run_check(&self, series: &mut TestSeries, check: GradeCheck) -> Option<AttemptResult> {
        let mut worst: Option<AttemptResult> = None;
        for (event, signing) in series.test_messages(check, self.clock.now()) {
            if series.left.is_zero() {
                return None;
            }
            let sent = self.send_signed(series, &event, signing);
            let Ok(attempt) = tokio::time::timeout(series.left, sent).await else {
                series.left = Duration::ZERO;
                return None;
            };
            series.left = series.left.saturating_sub(attempt.duration);
            worst = Some(match worst {
                Some(before) => worse_attempt(before, attempt),
                None => attempt,
            });
        }
        worst
    }

    async fn send_signed(
        &self,
        series: &TestSeries,
        event: &Event,
        signing: TestSignature,
    ) -> AttemptResult {
        let age = if signing == TestSignature::Old {
            OLD_TIMESTAMP_AGE
        } else {
            Duration::ZERO
        };
        let at = self
            .clock
            .now()
            .saturating_sub(age)
            .unwrap_or(Timestamp::MIN);
        let outgoing = OutgoingEvent {
            to: &series.to,
            event,
            at,
            keep_bytes: PostRequest::KEEP_BYTES_FOR_LOG,
        };
        self.send_with_signature(outgoing, |message| {
            let mut headers = match signing {
                TestSignature::WithOtherSecret => {
                    message.headers(&[SigningSecret::generate(&mut clock::system_rng())])
                }
                TestSignature::Right | TestSignature::Absent | TestSignature::Old => {
                    message.headers(&series.to.secrets)
                }
            };
            headers.retain(|(name, _)| {
                signing != TestSignature::Absent || *name != "webhook-signature"
            });
            headers
        })
        .await
    }
}

impl TestSeries {
    fn test_messages(&self, check: GradeCheck, now: Timestamp) -> Vec<(Event, TestSignature)> {
        let made = |sequence, moment| {
            test_event(
                &self.to.endpoint,
                sequence,
                moment,
                data_for_check(check, &self.subject),
            )
        };
        let plain = || made(0, now);
        match check {
            GradeCheck::Good | GradeCheck::Duplicate => {
                vec![(self.first.clone(), TestSignature::Right)]
            }
            GradeCheck::Reordered => vec![
                (made(2, now), TestSignature::Right),
                (made(1, now), TestSignature::Right),
            ],
            GradeCheck::Delayed => {
                let then = now
                    .saturating_sub(DELAYED_EVENT_AGE)
                    .unwrap_or(Timestamp::MIN);
                vec![(made(0, then), TestSignature::Right)]
            }
            GradeCheck::BadSignature => vec![(plain(), TestSignature::WithOtherSecret)],
            GradeCheck::MissingSignature => vec![(plain(), TestSignature::Absent)],
            GradeCheck::OldTimestamp => vec![(plain(), TestSignature::Old)],
            GradeCheck::LargeBody => {
                let mut data = data_for_check(check, &self.subject);
                data["filler"] = Value::from("x".repeat(FILLER_BYTES));
                vec![(
                    test_event(&self.to.endpoint, 0, now, data),
                    TestSignature::Right,
                )]
            }
            GradeCheck::Speed => Vec::new(),
        }
    }
}

fn data_for_check(check: GradeCheck, subject: &str) -> Value {
    json!({ "check": check, "subject": subject })
}

/// Returns the worse of two attempts: the one that was not delivered or, if both or neither were delivered, the slower
/// one.
fn worse_attempt(first: AttemptResult, second: AttemptResult) -> AttemptResult {
    match (first.is_delivered(), second.is_delivered()) {
        (false, true) => first,
        (true, false) => second,
        _ if first.duration >= second.duration => first,
        _ => second,
    }
}
