//! Links in mails that work without a sign-in. Each carries a signature, so that nobody can forge one for another person.

use aws_lc_rs::hmac;
use secrecy::{ExposeSecret, SecretString};

use crate::domain::notice::{NoticeScope, NoticeTopic};

/// The path of the page on which a person unsubscribes from a topic. The parameters of the link follow it.
pub const UNSUBSCRIBE_PATH: &str = "/sign-in/unsubscribe/";

/// Signs and checks links with a secret of this deployment.
#[derive(Debug, Clone)]
pub struct MailLinks(SecretString);

impl MailLinks {
    pub fn new(secret: SecretString) -> Self {
        Self(secret)
    }

    /// Returns the path of the link with which this person unsubscribes from a topic.
    pub fn unsubscribe_path(&self, person: NoticeScope, topic: NoticeTopic) -> String {
        let slug = person.to_string().replace('/', "-");
        let signature = hex::encode(hmac::sign(
            &self.key(),
            signed_text(person, topic).as_bytes(),
        ));
        format!("{UNSUBSCRIBE_PATH}{slug}/{topic}/{signature}")
    }

    /// Returns the person and the topic of a link; `None` if the signature is not right.
    pub fn check(
        &self,
        slug: &str,
        topic: &str,
        signature: &str,
    ) -> Option<(NoticeScope, NoticeTopic)> {
        let person = slug.replace('-', "/").parse().ok()?;
        let topic = NoticeTopic::parse(topic)?;
        let signature = hex::decode(signature).ok()?;
        let claim = signed_text(person, topic);
        let is_right = hmac::verify(&self.key(), claim.as_bytes(), &signature).is_ok();
        is_right.then_some((person, topic))
    }

    /// Returns the secret of the one-time link in a mail. It depends on the mail's id alone, so a mail that is sent
    /// twice has the same link.
    pub fn invitation_secret(&self, mail: &str) -> [u8; 32] {
        let signed = hmac::sign(&self.key(), format!("invitation {mail}").as_bytes());
        let mut secret = [0; 32];
        secret.copy_from_slice(signed.as_ref());
        secret
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, self.0.expose_secret().as_bytes())
    }
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
            links.check(slug, topic, signature),
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
            assert_eq!(links.check(slug, topic, signature), None, "{slug} {topic}");
        }
    }
}
