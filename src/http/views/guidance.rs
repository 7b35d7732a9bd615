//! Explains to the owner of a dead letter why the delivery failed for good and how to fix the cause.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guidance {
    pub(crate) why: String,
    pub(crate) what_to_do: &'static str,
}

impl Guidance {
    /// Returns the guidance for the last failed attempt: the name of its `AttemptOutcome`, and its HTTP status.
    pub(crate) fn for_failure(failure: Option<&str>, status: Option<u16>) -> Self {
        let Some(failure) = failure else {
            let why = "It was given up before an attempt failed".to_owned();
            return Self {
                why,
                what_to_do: "Replay it.",
            };
        };
        let why = match (failure, status) {
            ("gone", _) => "The endpoint answered 410, which says that it wants no more".to_owned(),
            ("aborted", Some(status)) => {
                format!("The endpoint answered {status} and wants this message no more")
            }
            (_, Some(status @ 300..=399)) => {
                format!("The endpoint answered {status}, and redirects are not followed")
            }
            (_, Some(status)) => format!("The endpoint answered {status}"),
            ("timed_out", None) => "The endpoint did not answer in time".to_owned(),
            ("dns", None) => "The endpoint's name does not resolve".to_owned(),
            ("connect", None) => "No connection to the endpoint could be made".to_owned(),
            ("tls", None) => "No trusted TLS connection to the endpoint could be made".to_owned(),
            ("reset", None) => "The connection ended without an HTTP answer".to_owned(),
            ("excess", None) => "The endpoint sent more than an HTTP answer may have".to_owned(),
            ("forbidden", None) => "The URL leads to an address that is not called".to_owned(),
            ("auth", None) => {
                "The request could not be authenticated, so it was not sent".to_owned()
            }
            ("quarantined", None) => {
                "The service ended three times while it was under way".to_owned()
            }
            ("interrupted", None) => "The service ended while it was under way".to_owned(),
            (other, None) => format!("The last attempt failed: {other}"),
        };
        Self {
            why,
            what_to_do: what_to_do(failure, status),
        }
    }
}

fn what_to_do(failure: &str, status: Option<u16>) -> &'static str {
    match (failure, status) {
        ("gone", _) => {
            "Where messages are wanted after all, enable the webhook, then replay this one."
        }
        ("aborted", _) => "Where the endpoint wants it after all, replay this one.",
        (_, Some(300..=399)) => {
            "Set the URL that it leads to as the webhook's, then replay this one."
        }
        (_, Some(401 | 403)) => {
            "Let the endpoint take messages that are signed with the webhook's secret: the test with `grade=true` \
             says what is wrong. Then replay this one."
        }
        (_, Some(404 | 405)) => {
            "Let the path of the webhook's URL take POST, then replay this one."
        }
        (_, Some(413)) => {
            "Let the endpoint take larger bodies, 1 MiB at least, then replay this one."
        }
        (_, Some(429)) => "Do not count deliveries against a limit, then replay this one.",
        (_, Some(400..=499)) => {
            "Read in `response` why the endpoint refuses it and fix the endpoint, then replay this one."
        }
        (_, Some(_)) => {
            "Look into the endpoint's own log for what broke and fix it, then replay this one."
        }
        ("timed_out", None) => {
            "Let the endpoint store the message, answer 2xx and work on it afterwards, then replay this one."
        }
        ("dns", None) => "Correct the webhook's URL or the name's DNS entry, then replay this one.",
        ("tls", None) => {
            "Renew the endpoint's certificate, with its whole chain, then replay this one."
        }
        ("excess", None) => {
            "Let the endpoint answer with one short head and body, then replay this one."
        }
        ("auth", None) => {
            "Read in `response` why. Where the credentials were set for another host, have the operator set the \
             credentials again for this host, or set the URL of the host they are for. Then replay this one."
        }
        ("forbidden", None) => "Set a URL of a public host as the webhook's, then replay this one.",
        ("quarantined", None) => {
            "The service tries it once more by itself when it has run for a while; replay it now if that is too late. \
             Where it fails again, tell the operator."
        }
        (_, None) => {
            "See with the webhook's test whether the endpoint can be reached, fix it, then replay this one."
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use address_policy::UrlFault;
    use webhook_client::auth::AuthFault;
    use webhook_client::{AttemptOutcome, TransportFault};

    use super::*;

    #[test]
    fn every_failure_has_its_own_words() {
        let mut text = String::new();
        for outcome in [
            AttemptOutcome::Gone,
            AttemptOutcome::Rejected(307),
            AttemptOutcome::Rejected(400),
            AttemptOutcome::Rejected(401),
            AttemptOutcome::Rejected(404),
            AttemptOutcome::Rejected(413),
            AttemptOutcome::Rejected(429),
            AttemptOutcome::Rejected(503),
            AttemptOutcome::TimedOut,
            AttemptOutcome::Unreachable(TransportFault::Dns),
            AttemptOutcome::Unreachable(TransportFault::Connect),
            AttemptOutcome::Unreachable(TransportFault::Tls),
            AttemptOutcome::Unreachable(TransportFault::Reset),
            AttemptOutcome::Unreachable(TransportFault::Excess),
            AttemptOutcome::Forbidden(UrlFault::AddressRefused),
            AttemptOutcome::Unauthenticated(AuthFault::OtherOrigin),
        ] {
            let status = match outcome {
                AttemptOutcome::Rejected(status) => Some(status),
                AttemptOutcome::Gone => Some(410),
                _ => None,
            };
            let guidance = Guidance::for_failure(Some(outcome.name()), status);
            writeln!(text, "{}. {}", guidance.why, guidance.what_to_do).unwrap();
        }
        insta::assert_snapshot!(text);
    }

    #[test]
    fn an_unknown_failure_class_is_shown_by_its_name() {
        let guidance = Guidance::for_failure(Some("circuit_open"), None);
        assert_eq!(guidance.why, "The last attempt failed: circuit_open");
        assert!(guidance.what_to_do.contains("test"));
        let aborted = Guidance::for_failure(Some("aborted"), Some(422));
        assert_eq!(
            aborted.why,
            "The endpoint answered 422 and wants this message no more"
        );
        assert_eq!(Guidance::for_failure(None, None).what_to_do, "Replay it.");
    }
}
