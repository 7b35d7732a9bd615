//! The entity tag of a response (RFC 9110, section 8.8.3), which is the digest of its bytes. A caller that sends the
//! tag with a read gets no body if nothing has changed; a change that is sent with an old tag is refused.

use actix_web::HttpRequest;
use actix_web::http::header::{
    EntityTag, Header as _, IF_MATCH, IF_NONE_MATCH, IfMatch, IfNoneMatch,
};
use sha2::{Digest, Sha256};

/// Separates the tag of an object from the digest of what a response shows besides it.
const ADDITION_MARK: char = '.';

pub(crate) fn entity_tag(bytes: &[u8]) -> EntityTag {
    EntityTag::new_strong(hex::encode(Sha256::digest(bytes)))
}

/// Returns the tag of a response that shows the object with this tag, and something else that may change while the
/// object stays as it is. A change that depends on this tag depends on the object alone.
pub(crate) fn tag_with_addition(tag: &EntityTag, addition: &[u8]) -> EntityTag {
    let digest = hex::encode(Sha256::digest(addition));
    EntityTag::new_strong(format!("{}{ADDITION_MARK}{digest}", tag.tag()))
}

/// Returns the tag of the object that a response with this tag shows.
fn object_tag(tag: &EntityTag) -> &str {
    let text = tag.tag();
    text.split_once(ADDITION_MARK)
        .map_or(text, |(object, _)| object)
}

/// Returns true if the header `If-None-Match` says that the caller already has the response with this tag.
pub(crate) fn is_known_to_caller(request: &HttpRequest, tag: &EntityTag) -> bool {
    if !request.headers().contains_key(IF_NONE_MATCH) {
        return false;
    }
    match IfNoneMatch::parse(request) {
        Ok(IfNoneMatch::Any) => true,
        Ok(IfNoneMatch::Items(tags)) => tags.iter().any(|known_tag| known_tag.weak_eq(tag)),
        Err(_) => false,
    }
}

/// The tags of the versions on which a caller's change depends: the change is made only if the tag of the current
/// version is among them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Precondition(Vec<EntityTag>);

impl Precondition {
    /// Reads the header `If-Match`. Returns `None` without the header, and for `*`, which only demands that the object
    /// exists. A malformed header becomes a precondition that no version meets, so that the change is refused.
    pub(crate) fn from_request(request: &HttpRequest) -> Option<Self> {
        if !request.headers().contains_key(IF_MATCH) {
            return None;
        }
        match IfMatch::parse(request) {
            Ok(IfMatch::Any) => None,
            Ok(IfMatch::Items(tags)) => Some(Self(tags)),
            Err(_) => Some(Self(Vec::new())),
        }
    }

    /// Returns true if the caller has seen the version with this tag. Weak tags count too, because a proxy that
    /// compresses may have weakened the tag.
    pub(crate) fn is_met_by(&self, tag: &EntityTag) -> bool {
        let mut known_tags = self.0.iter();
        known_tags.any(|known_tag| object_tag(known_tag) == tag.tag())
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    const HELLO_TAG: &str = "\"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\"";

    #[test]
    fn a_tag_is_the_digest_in_quotes() {
        assert_eq!(entity_tag(b"hello").to_string(), HELLO_TAG);
    }

    #[test]
    fn a_caller_that_sends_the_tag_already_has_the_response() {
        let weak = format!("W/{HELLO_TAG}");
        let both = format!("\"other\", {HELLO_TAG}");
        let with_addition = tag_with_addition(&entity_tag(b"hello"), b"more").to_string();
        for (header, expected) in [
            (HELLO_TAG, true),
            (with_addition.as_str(), false),
            (weak.as_str(), true),
            (both.as_str(), true),
            ("*", true),
            ("\"other\"", false),
            ("hello", false),
            ("", false),
        ] {
            let request = TestRequest::default()
                .insert_header((IF_NONE_MATCH, header))
                .to_http_request();
            assert_eq!(
                is_known_to_caller(&request, &entity_tag(b"hello")),
                expected,
                "{header}"
            );
        }
        let without_header = TestRequest::default().to_http_request();
        assert!(!is_known_to_caller(&without_header, &entity_tag(b"hello")));
    }

    #[test]
    fn a_change_is_made_only_if_the_caller_sends_the_current_tag() {
        let weak = format!("W/{HELLO_TAG}");
        let both = format!("\"other\", {HELLO_TAG}");
        let current = tag_with_addition(&entity_tag(b"hello"), b"more").to_string();
        let old = tag_with_addition(&entity_tag(b"older"), b"more").to_string();
        for (header, expected) in [
            (HELLO_TAG, Some(true)),
            (current.as_str(), Some(true)),
            (old.as_str(), Some(false)),
            (weak.as_str(), Some(true)),
            (both.as_str(), Some(true)),
            ("*", None),
            ("\"other\"", Some(false)),
            ("hello", Some(false)),
            ("", Some(false)),
        ] {
            let request = TestRequest::default()
                .insert_header((IF_MATCH, header))
                .to_http_request();
            let is_met = Precondition::from_request(&request)
                .map(|precondition| precondition.is_met_by(&entity_tag(b"hello")));
            assert_eq!(is_met, expected, "{header}");
        }
        let without_header = TestRequest::default().to_http_request();
        assert_eq!(Precondition::from_request(&without_header), None);
    }
}
