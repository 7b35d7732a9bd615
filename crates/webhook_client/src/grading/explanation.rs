//! The explanations in a grade. For a failed check they say what was observed and how to fix it.

use std::time::Duration;

use crate::attempt::{AttemptOutcome, AttemptResult};
use crate::grading::grade::GradeCheck;

pub(crate) const NOT_SENT_EXPLANATION: &str = "It was not sent, or its answer not waited for: the time for the whole battery was over. \
     Answer quicker and ask for the grade again.";

/// The facts about attempts and messages that the explanations mention.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExplanationTerms<'a> {
    /// The timeout of an attempt.
    pub(crate) timeout: Duration,
    /// Why messages are large.
    pub(crate) why_large: &'a str,
}

const CHECK_FIRST_ADVICE: &str =
    "check the headers before anything else is done, and answer 400 or 401 where they do not fit.";

pub(crate) fn explain_passed(check: GradeCheck) -> &'static str {
    match check {
        GradeCheck::Good => "It takes what is right.",
        GradeCheck::Duplicate => "It takes a repetition without an error.",
        GradeCheck::Reordered => "It takes messages in any order.",
        GradeCheck::Delayed => "It takes news of what happened a while ago.",
        GradeCheck::BadSignature | GradeCheck::MissingSignature => {
            "It refuses what was not signed with its secret."
        }
        GradeCheck::OldTimestamp => "It refuses what may have been recorded and sent again.",
        GradeCheck::LargeBody => "It takes a large message.",
        GradeCheck::Speed => "It answers quickly enough.",
    }
}

/// Explains that the endpoint should have accepted a valid message with a 2xx in time.
pub(crate) fn explain_not_accepted(
    check: GradeCheck,
    answer: &AttemptResult,
    terms: ExplanationTerms<'_>,
) -> String {
    let observed = match answer.status {
        Some(status) => status_advice(status),
        None if answer.outcome == AttemptOutcome::TimedOut => format!(
            "It did not answer within {} s: store the message, answer 2xx, and work on it afterwards.",
            terms.timeout.as_secs()
        ),
        None => format!(
            "It could not be asked ({}), although the first message came through.",
            answer.outcome.failure_sentence().unwrap_or_default()
        ),
    };
    let why = match check {
        GradeCheck::LargeBody => format!("{}: ", terms.why_large),
        _ => String::new(),
    };
    format!("{observed} {why}{}", how_to_accept(check))
}

fn status_advice(status: u16) -> String {
    match status {
        410 => {
            "It answered 410, which switches the endpoint off at once: answer it only where no more messages \
             are wanted."
                .to_owned()
        }
        300..=399 => format!(
            "It answered {status}. Redirects are not followed: set the URL that it leads to as the webhook's."
        ),
        404 | 405 => format!("It answered {status}: let the path of the webhook's URL take POST."),
        429 => "It answered 429: do not count deliveries against a limit, or a busy day turns into retries."
            .to_owned(),
        500.. => {
            format!("It answered {status}: its own log says what broke. Whatever is not a 2xx is sent again.")
        }
        _ => format!("It answered {status}, which refuses it."),
    }
}

fn how_to_accept(check: GradeCheck) -> &'static str {
    match check {
        GradeCheck::Good | GradeCheck::Speed => {
            "The signature is over `{webhook-id}.{webhook-timestamp}.{body}` with the bytes of the body as they came, \
             never JSON that was parsed and written again; the key is what stands behind `whsec_`, decoded from \
             base64; the header may carry several signatures, parted by blanks, of which one has to fit."
        }
        GradeCheck::Duplicate => {
            "A message is sent again wherever its answer was lost: keep webhook-id under a unique index, and answer \
             2xx to what is there already."
        }
        GradeCheck::Reordered => {
            "Messages can overtake each other: take each of them, and let the higher `sequence` win where both \
             speak of one thing."
        }
        GradeCheck::Delayed => {
            "A message that is tried again for days carries the moment of its event in `timestamp`: hold only the \
             header webhook-timestamp, the moment of sending, against the clock."
        }
        GradeCheck::LargeBody => {
            "take bodies of 1 MiB at least, in the server and in any proxy before it (`client_max_body_size` and the \
             like)."
        }
        GradeCheck::BadSignature | GradeCheck::MissingSignature | GradeCheck::OldTimestamp => "",
    }
}

/// Explains that the endpoint should have refused an invalid message.
pub(crate) fn explain_not_refused(check: GradeCheck, answer: &AttemptResult) -> String {
    match answer.status {
        Some(200..=299) => how_to_refuse(check).to_owned(),
        Some(410) => {
            "It answered 410, which switches the endpoint off at once: anybody who sends nonsense could make \
             it do that. Answer 400 or 401."
                .to_owned()
        }
        Some(429 | 408) => {
            "It was turned away for another reason than its signature, so that this shows nothing: ask \
             for the grade again."
                .to_owned()
        }
        Some(status @ 400..=499) => format!(
            "It answered {status}, but to what is right as well, so that this shows nothing: fix that first."
        ),
        Some(status) => format!("It answered {status}, which is no refusal: {CHECK_FIRST_ADVICE}"),
        None if answer.outcome == AttemptOutcome::TimedOut => {
            format!("It did not answer in time: {CHECK_FIRST_ADVICE}")
        }
        None => format!(
            "It ended the connection ({}): answer 400 or 401 instead, which says that the message was read.",
            answer.outcome.failure_sentence().unwrap_or_default()
        ),
    }
}

fn how_to_refuse(check: GradeCheck) -> &'static str {
    match check {
        GradeCheck::MissingSignature => {
            "It took a message without a signature: anybody who knows the URL can tell it anything. Where one of \
             the headers webhook-id, webhook-timestamp and webhook-signature is missing, answer 400 or 401."
        }
        GradeCheck::OldTimestamp => {
            "It took a message that was sent ten minutes ago: somebody who recorded one can send it again. Refuse a \
             webhook-timestamp that is more than five minutes from the present, and keep the clock right."
        }
        _ => {
            "It took a message that was signed with another secret: anybody who knows the URL can tell it anything. \
             Verify webhook-signature with the webhook's secret, as the packages of Standard Webhooks do, before \
             the body is read, and answer 400 or 401 where it does not fit."
        }
    }
}

pub(crate) fn explain_speed(is_passed: bool, timeout: Duration) -> String {
    if is_passed {
        return explain_passed(GradeCheck::Speed).to_owned();
    }
    format!(
        "It took more than half of the {} s that an attempt has: on a busy day that becomes a timeout, and what \
         was taken is sent again. Store the message, answer 2xx, and work on it afterwards.",
        timeout.as_secs()
    )
}
