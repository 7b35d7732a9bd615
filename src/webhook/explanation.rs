//! What is wrong with a receiver, told to whoever programs it: a sentence for what was seen, one for how it is mended.

use std::time::Duration;

use super::attempt::{Attempt, Outcome};
use super::grade::Check;

pub(super) const NOT_SENT: &str = "It was not sent, or its answer not waited for: the time for the whole battery was over. \
     Answer quicker and ask for the grade again.";

const CHECK_FIRST: &str =
    "check the headers before anything else is done, and answer 400 or 401 where they do not fit.";

/// What a check that was passed shows.
pub(super) fn of_passed(check: Check) -> &'static str {
    match check {
        Check::Good => "It takes what is right.",
        Check::Duplicate => "It takes a repetition without an error.",
        Check::Reordered => "It takes messages in any order.",
        Check::Delayed => "It takes news of what happened a while ago.",
        Check::BadSignature | Check::MissingSignature => "It refuses what was not signed with its secret.",
        Check::OldTimestamp => "It refuses what may have been recorded and sent again.",
        Check::LargeBody => "It takes a large message.",
        Check::Speed => "It answers quickly enough.",
    }
}

/// Why a message that is right was not taken.
pub(super) fn of_not_accepted(check: Check, answer: &Attempt, timeout: Duration) -> String {
    let what = match answer.status {
        Some(status) => of_status(status),
        None if answer.outcome == Outcome::TimedOut => format!(
            "It did not answer within {} s: store the message, answer 2xx, and work on it afterwards.",
            timeout.as_secs()
        ),
        None => format!(
            "It could not be asked ({}), although the first message came through.",
            answer.outcome.failure().unwrap_or_default()
        ),
    };
    format!("{what} {}", how_to_accept(check))
}

fn of_status(status: u16) -> String {
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

fn how_to_accept(check: Check) -> &'static str {
    match check {
        Check::Good | Check::Speed => {
            "The signature is over `{webhook-id}.{webhook-timestamp}.{body}` with the bytes of the body as they came, \
             never JSON that was parsed and written again; the key is what stands behind `whsec_`, decoded from \
             base64; the header may carry several signatures, parted by blanks, of which one has to fit."
        }
        Check::Duplicate => {
            "A message is sent again wherever its answer was lost: keep webhook-id under a unique index, and answer \
             2xx to what is there already."
        }
        Check::Reordered => {
            "Messages can overtake each other: take each of them, and let the higher `sequence` win where both \
             speak of one thing."
        }
        Check::Delayed => {
            "A message that is tried again for days carries the moment of its event in `timestamp`: hold only the \
             header webhook-timestamp, the moment of sending, against the clock."
        }
        Check::LargeBody => {
            "A message carries the whole invoice: take bodies of 1 MiB at least, in the server and in any proxy \
             before it (`client_max_body_size` and the like)."
        }
        Check::BadSignature | Check::MissingSignature | Check::OldTimestamp => "",
    }
}

/// Why a message that is wrong was not refused as it should be.
pub(super) fn of_not_refused(check: Check, answer: &Attempt) -> String {
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
            "It answered {status}, but to what is right as well, so that this shows nothing: mend that first."
        ),
        Some(status) => format!("It answered {status}, which is no refusal: {CHECK_FIRST}"),
        None if answer.outcome == Outcome::TimedOut => format!("It did not answer in time: {CHECK_FIRST}"),
        None => format!(
            "It ended the connection ({}): answer 400 or 401 instead, which says that the message was read.",
            answer.outcome.failure().unwrap_or_default()
        ),
    }
}

fn how_to_refuse(check: Check) -> &'static str {
    match check {
        Check::MissingSignature => {
            "It took a message without a signature: anybody who knows the URL can tell it anything. Where one of \
             the headers webhook-id, webhook-timestamp and webhook-signature is missing, answer 400 or 401."
        }
        Check::OldTimestamp => {
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

pub(super) fn of_speed(passed: bool, timeout: Duration) -> String {
    if passed {
        return of_passed(Check::Speed).to_owned();
    }
    format!(
        "It took more than half of the {} s that an attempt has: on a busy day that becomes a timeout, and what \
         was taken is sent again. Store the message, answer 2xx, and work on it afterwards.",
        timeout.as_secs()
    )
}
