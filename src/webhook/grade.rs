//! What the answers to a battery of test messages are worth: a mark for each check and a grade over all of them.
//! A receiver that takes what nobody signed fails, whatever else it does well, and so does one that refuses what is
//! right. What is wrong with an answer, and how it is mended, is told in `explanation`.

use std::time::Duration;

use super::attempt::Attempt;
use super::explanation;
use crate::domain::kernel::codes::words;

words! {
    /// What is looked at, in the order in which it is sent. Speed is of all that was sent.
    Check {
        Good = "good",
        Duplicate = "duplicate",
        Reordered = "reordered",
        Delayed = "delayed",
        BadSignature = "bad_signature",
        MissingSignature = "missing_signature",
        OldTimestamp = "old_timestamp",
        LargeBody = "large_body",
        Speed = "speed",
    }
}

words! {
    /// A is a receiver without a fault.
    Grade { A = "A", B = "B", C = "C", D = "D", F = "F" }
}

/// What a check is passed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// A 2xx.
    Accepted,
    /// A 4xx.
    Refused,
    /// Any answer, within half the time that an attempt has.
    Quick,
}

/// What came of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    pub check: Check,
    pub passed: bool,
    pub status: Option<u16>,
    /// None where it was not sent.
    pub duration: Option<Duration>,
    /// For whoever programs the receiver: what is wrong and how it is mended, or what is right.
    pub explanation: String,
}

/// What came of the whole battery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graded {
    pub grade: Grade,
    /// Of 100.
    pub score: u32,
    pub marks: Vec<Mark>,
}

impl Check {
    pub(super) fn expectation(self) -> Expected {
        match self {
            Self::Good | Self::Duplicate | Self::Reordered | Self::Delayed | Self::LargeBody => {
                Expected::Accepted
            }
            Self::BadSignature | Self::MissingSignature | Self::OldTimestamp => Expected::Refused,
            Self::Speed => Expected::Quick,
        }
    }

    /// What it is worth; all together are worth 100.
    fn points(self) -> u32 {
        match self {
            Self::BadSignature => 25,
            Self::OldTimestamp => 20,
            Self::Good | Self::MissingSignature => 15,
            Self::Duplicate | Self::Reordered | Self::Delayed | Self::LargeBody | Self::Speed => 5,
        }
    }

    /// What is sent, for the reader of the grade.
    pub fn sent(self) -> &'static str {
        match self {
            Self::Good => "a message that is right in every respect",
            Self::Duplicate => "the same message again, with the same webhook-id",
            Self::Reordered => "two messages about one subject, sequence 2 before sequence 1",
            Self::Delayed => "a message whose event is three days old, signed just now",
            Self::BadSignature => "a message that was signed with another secret",
            Self::MissingSignature => "a message without the header webhook-signature",
            Self::OldTimestamp => {
                "a message whose webhook-timestamp is ten minutes old, with the signature that fits it"
            }
            Self::LargeBody => "a message of more than 200 KiB",
            Self::Speed => "the slowest answer of all of them",
        }
    }

    pub fn expected(self) -> &'static str {
        match self.expectation() {
            Expected::Accepted => "a status from 200 to 299",
            Expected::Refused => "a status from 400 to 499, such as 400 or 401",
            Expected::Quick => "an answer within half of the time that an attempt has",
        }
    }
}

/// Marks the answers, in the order of the checks: of each the worst, or none where it was not sent in time. An attempt
/// has `timeout`.
pub fn graded(answers: &[(Check, Option<Attempt>)], timeout: Duration) -> Graded {
    let takes_right_ones =
        answers.iter().any(|(check, answer)| *check == Check::Good && is_accepted(answer.as_ref()));
    let mut marks: Vec<_> = answers
        .iter()
        .map(|(check, answer)| mark(*check, answer.as_ref(), (takes_right_ones, timeout)))
        .collect();
    let slowest =
        answers.iter().filter_map(|(_, answer)| answer.as_ref()).map(|answer| answer.duration).max();
    marks.push(speed(slowest, timeout));
    let score = marks.iter().filter(|mark| mark.passed).map(|mark| mark.check.points()).sum();
    let takes_forged_ones = answers.iter().any(|(check, answer)| {
        matches!(check, Check::BadSignature | Check::MissingSignature) && is_accepted(answer.as_ref())
    });
    let grade = match score {
        _ if takes_forged_ones || !takes_right_ones => Grade::F,
        100.. => Grade::A,
        85.. => Grade::B,
        70.. => Grade::C,
        50.. => Grade::D,
        _ => Grade::F,
    };
    Graded { grade, score, marks }
}

fn is_accepted(answer: Option<&Attempt>) -> bool {
    answer.is_some_and(Attempt::is_delivered)
}

fn mark(check: Check, answer: Option<&Attempt>, (takes_right_ones, timeout): (bool, Duration)) -> Mark {
    let Some(answer) = answer else {
        let explanation = explanation::NOT_SENT.to_owned();
        return Mark { check, passed: false, status: None, duration: None, explanation };
    };
    let passed = match check.expectation() {
        Expected::Accepted | Expected::Quick => answer.is_delivered(),
        // Where everything is refused, a refusal shows nothing.
        Expected::Refused => takes_right_ones && answer.status.is_some_and(is_refusal),
    };
    let explanation = match check.expectation() {
        _ if passed => explanation::of_passed(check).to_owned(),
        Expected::Accepted | Expected::Quick => explanation::of_not_accepted(check, answer, timeout),
        Expected::Refused => explanation::of_not_refused(check, answer),
    };
    Mark { check, passed, status: answer.status, duration: Some(answer.duration), explanation }
}

/// A 429 and a 408 are refused for other reasons than the message, and a 410 says more than that.
fn is_refusal(status: u16) -> bool {
    (400..500).contains(&status) && ![408, 410, 429].contains(&status)
}

fn speed(slowest: Option<Duration>, timeout: Duration) -> Mark {
    let passed = slowest.is_some_and(|slowest| slowest <= timeout / 2);
    let explanation = explanation::of_speed(passed, timeout);
    Mark { check: Check::Speed, passed, status: None, duration: slowest, explanation }
}

#[cfg(test)]
mod tests {
    use super::super::attempt::Outcome;
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(10);

    fn answer(status: u16) -> Attempt {
        let outcome = match status {
            200..=299 => Outcome::Delivered,
            410 => Outcome::Gone,
            other => Outcome::Rejected(other),
        };
        Attempt { status: Some(status), duration: Duration::from_millis(20), ..Attempt::unanswered(outcome) }
    }

    /// A receiver that is right but for these answers.
    fn but(changes: &[(Check, Option<Attempt>)]) -> Graded {
        let answers: Vec<_> = Check::ALL
            .iter()
            .filter(|check| **check != Check::Speed)
            .map(|check| {
                let right = if check.expectation() == Expected::Refused { 401 } else { 204 };
                let wrong = changes.iter().find(|(other, _)| other == check);
                (*check, wrong.map_or(Some(answer(right)), |(_, answer)| answer.clone()))
            })
            .collect();
        graded(&answers, TIMEOUT)
    }

    fn all(status: u16) -> Graded {
        let changes: Vec<_> = Check::ALL.iter().map(|check| (*check, Some(answer(status)))).collect();
        but(&changes)
    }

    fn failed(graded: &Graded) -> Vec<Check> {
        graded.marks.iter().filter(|mark| !mark.passed).map(|mark| mark.check).collect()
    }

    #[test]
    fn a_receiver_without_a_fault_has_an_a() {
        let graded = but(&[]);
        assert_eq!((graded.grade, graded.score, failed(&graded)), (Grade::A, 100, vec![]));
        let checks: Vec<_> = graded.marks.iter().map(|mark| mark.check).collect();
        assert_eq!(checks, Check::ALL);
        assert_eq!(Check::ALL.iter().map(|check| check.points()).sum::<u32>(), 100);
    }

    #[test]
    fn each_fault_costs_what_it_is_worth() {
        let slow = Attempt { duration: Duration::from_millis(5_001), ..answer(204) };
        let late = Attempt { duration: TIMEOUT, ..Attempt::unanswered(Outcome::TimedOut) };
        for (check, answer, grade, score) in [
            (Check::Duplicate, Some(answer(409)), Grade::B, 95),
            (Check::Reordered, Some(answer(422)), Grade::B, 95),
            (Check::Delayed, Some(answer(400)), Grade::B, 95),
            (Check::LargeBody, Some(answer(413)), Grade::B, 95),
            (Check::LargeBody, Some(slow), Grade::B, 95),
            (Check::LargeBody, Some(late), Grade::B, 90),
            (Check::LargeBody, None, Grade::B, 95),
            (Check::OldTimestamp, Some(answer(200)), Grade::C, 80),
            (Check::MissingSignature, Some(answer(500)), Grade::B, 85),
            (Check::MissingSignature, Some(answer(302)), Grade::B, 85),
            (Check::MissingSignature, Some(answer(410)), Grade::B, 85),
            (Check::MissingSignature, Some(answer(429)), Grade::B, 85),
            (Check::BadSignature, Some(answer(503)), Grade::C, 75),
            // What nobody signed was taken.
            (Check::BadSignature, Some(answer(200)), Grade::F, 75),
            (Check::MissingSignature, Some(answer(202)), Grade::F, 85),
        ] {
            let graded = but(&[(check, answer.clone())]);
            assert_eq!((graded.grade, graded.score), (grade, score), "{check}: {answer:?}");
            let mark = graded.marks.iter().find(|mark| !mark.passed).unwrap();
            assert!(mark.explanation.len() > 40, "{check}: {}", mark.explanation);
        }
    }

    #[test]
    fn a_receiver_that_takes_everything_or_nothing_fails() {
        let trusting = all(200);
        assert_eq!((trusting.grade, trusting.score), (Grade::F, 40));
        let refused = [Check::BadSignature, Check::MissingSignature, Check::OldTimestamp];
        assert_eq!(failed(&trusting), refused);
        for status in [302, 400, 401, 404, 410, 429, 500] {
            let graded = all(status);
            assert_eq!((graded.grade, graded.score), (Grade::F, 5), "{status}: only quick");
        }
    }

    #[test]
    fn what_was_not_sent_in_time_says_so_and_is_not_passed() {
        let graded = but(&[(Check::OldTimestamp, None), (Check::LargeBody, None)]);
        assert_eq!((graded.grade, graded.score), (Grade::C, 75));
        let mark = graded.marks.iter().find(|mark| mark.check == Check::LargeBody).unwrap();
        assert_eq!((mark.status, mark.duration), (None, None));
        assert!(mark.explanation.contains("not sent"), "{}", mark.explanation);
    }

    #[test]
    fn half_of_the_time_is_still_quick() {
        let at = |duration| but(&[(Check::Good, Some(Attempt { duration, ..answer(204) }))]);
        assert_eq!(at(TIMEOUT / 2).grade, Grade::A);
        let graded = at(TIMEOUT / 2 + Duration::from_millis(1));
        assert_eq!((graded.grade, failed(&graded)), (Grade::B, vec![Check::Speed]));
        assert_eq!(graded.marks.last().unwrap().duration, Some(Duration::from_millis(5_001)));
    }
}
