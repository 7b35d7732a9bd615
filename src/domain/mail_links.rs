//! Links in mails that work without a sign-in. Each carries a signature, so that nobody can forge one for another
//! person.

use std::iter;

use aws_lc_rs::hmac;
use secrecy::{ExposeSecret, SecretString};

use crate::domain::notice::{NoticeScope, NoticeTopic};

/// The path of the page on which a person unsubscribes from a topic. The parameters of the link follow it.
pub const UNSUBSCRIBE_PATH: &str = "/sign-in/unsubscribe/";

/// Signs links with a secret of this deployment, and accepts links that were signed with this secret or with one of
/// `others`.
#[derive(Debug, Clone)]
pub struct MailLinks {
    secret: SecretString,
    others: Vec<SecretString>,
}

impl MailLinks {
    pub fn new(secret: SecretString) -> Self {
        Self {
            secret,
            others: Vec::new(),
        }
    }

    /// Accepts links that were signed with these secrets, too: earlier ones of this deployment, or the next one.
    #[must_use]
    pub fn with_other_secrets(mut self, secrets: Vec<SecretString>) -> Self {
        self.others = secrets;
        self
    }

    /// Returns the path of the link with which this person unsubscribes from a topic.
    pub fn unsubscribe_path(&self, person: NoticeScope, topic: NoticeTopic) -> String {
        let slug = person.to_string().replace('/', "-");
        let signature = hex::encode(hmac::sign(
            &signing_key(&self.secret),
            signed_text(person, topic).as_bytes(),
        ));
        format!("{UNSUBSCRIBE_PATH}{slug}/{topic}/{signature}")
    }

    /// Returns the person and the topic of a link; `None` if the signature is not right.
    pub fn verify_link(
        &self,
        slug: &str,
        topic: &str,
        signature: &str,
    ) -> Option<(NoticeScope, NoticeTopic)> {
        let person = slug.replace('-', "/").parse().ok()?;
        let topic = NoticeTopic::parse(topic)?;
        let signature = hex::decode(signature).ok()?;
        let claim = signed_text(person, topic);
        let mut secrets = iter::once(&self.secret).chain(&self.others);
        let is_right = secrets
            .any(|secret| hmac::verify(&signing_key(secret), claim.as_bytes(), &signature).is_ok());
        is_right.then_some((person, topic))
    }

    /// Returns the secret of the one-time link in a mail. The secret depends on `mail_id` alone, so a mail that is sent
    /// twice has the same link.
    pub fn invitation_secret(&self, mail_id: &str) -> [u8; 32] {
        let text = format!("invitation {mail_id}");
        let signed = hmac::sign(&signing_key(&self.secret), text.as_bytes());
        let mut secret = [0; 32];
        secret.copy_from_slice(signed.as_ref());
        secret
    }
}

fn signing_key(secret: &SecretString) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret.expose_secret().as_bytes())
}

/// Returns the text that the signature of an unsubscribe link covers.
fn signed_text(person: NoticeScope, topic: NoticeTopic) -> String {
    format!("unsubscribe {person} {topic}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_for_its_person_and_topic_only() {
        let links = MailLinks::new("one secret".to_owned().into());
        let person: NoticeScope = "contact/7/9".parse().unwrap();
        let path = links.unsubscribe_path(person, NoticeTopic::Outage);
        let parts: Vec<_> = path.split('/').collect();
        let [_, _, _, slug, topic, signature] = parts[..] else {
            panic!("{path}")
        };
        assert_eq!((slug, topic), ("contact-7-9", "outage"));
        assert_eq!(
            links.verify_link(slug, topic, signature),
            Some((person, NoticeTopic::Outage))
        );
        let other = MailLinks::new("another secret".to_owned().into());
        for (links, slug, topic, signature) in [
            (&other, slug, topic, signature),
            (&links, "contact-7-8", topic, signature),
            (&links, slug, "webhook", signature),
            (&links, slug, topic, "00"),
            (&links, slug, topic, "odd"),
            (&links, "robot-1", topic, signature),
        ] {
            assert_eq!(
                links.verify_link(slug, topic, signature),
                None,
                "{slug} {topic}"
            );
        }
    }

    #[test]
    fn a_link_stays_valid_while_the_secret_it_was_signed_with_is_known() {
        let secret = |name: &str| SecretString::from(name.to_owned());
        let person: NoticeScope = "contact/7/9".parse().unwrap();
        let signed = MailLinks::new(secret("old")).unsubscribe_path(person, NoticeTopic::Outage);
        let parts: Vec<_> = signed.split('/').collect();
        let [_, _, _, slug, topic, signature] = parts[..] else {
            panic!("{signed}")
        };
        for (current, others, is_valid) in [
            ("old", &["new"][..], true),
            ("new", &["old"][..], true),
            ("new", &["older", "old"][..], true),
            ("new", &["older"][..], false),
            ("new", &[][..], false),
        ] {
            let others = others.iter().map(|name| secret(name)).collect();
            let links = MailLinks::new(secret(current)).with_other_secrets(others);
            assert_eq!(
                links.verify_link(slug, topic, signature).is_some(),
                is_valid,
                "{current}"
            );
            let again = links.unsubscribe_path(person, NoticeTopic::Outage);
            assert_eq!(again == signed, current == "old", "{current}");
        }
    }
}
