//! The entity tag of a response (RFC 9110, section 8.8.3), which is the digest of its bytes. A caller that sends the
//! tag with a read gets no body if nothing has changed; a change that is sent with an old tag is refused.

use actix_web::HttpRequest;
use actix_web::http::header::{
    EntityTag, Header as _, IF_MATCH, IF_NONE_MATCH, IfMatch, IfNoneMatch,
};
use sha2::{Digest, Sha256};

pub(crate) fn entity_tag(bytes: &[u8]) -> EntityTag {
    EntityTag::new_strong(hex::encode(Sha256::digest(bytes)))
}

/// True if the caller says by `If-None-Match` that it already has the response with this tag.
pub(crate) fn is_known_to_caller(request: &HttpRequest, tag: &EntityTag) -> bool {
    if !request.headers().contains_key(IF_NONE_MATCH) {
        return false;
    }
    match IfNoneMatch::parse(request) {
        Ok(IfNoneMatch::Any) => true,
        Ok(IfNoneMatch::Items(tags)) => tags.iter().any(|one| one.weak_eq(tag)),
        Err(_) => false,
    }
}

/// The tags of the versions on which a caller's change depends: the change is made only if the current version has one
/// of them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Precondition(Vec<EntityTag>);

impl Precondition {
    /// Returns what `If-Match` demands; `None` if the caller demands nothing, or only that the object exists. A
    /// malformed header becomes a precondition that no version meets, so that the change is refused.
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

    /// True if the caller has seen the version with this tag. Weak tags count too, because a proxy that compresses may
    /// have weakened the tag.
    pub(crate) fn is_met_by(&self, tag: &EntityTag) -> bool {
        self.0.iter().any(|one| one.weak_eq(tag))
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    const HELLO: &str = "\"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\"";

    #[test]
    fn a_tag_is_the_digest_in_quotes() {
        assert_eq!(entity_tag(b"hello").to_string(), HELLO);
    }

    #[test]
    fn who_names_the_tag_holds_the_representation() {
        let weak = format!("W/{HELLO}");
        let both = format!("\"other\", {HELLO}");
        for (header, expected) in [
            (HELLO, true),
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
        let bare = TestRequest::default().to_http_request();
        assert!(!is_known_to_caller(&bare, &entity_tag(b"hello")));
    }

    #[test]
    fn a_change_depends_on_what_the_caller_names() {
        let weak = format!("W/{HELLO}");
        let both = format!("\"other\", {HELLO}");
        for (header, expected) in [
            (HELLO, Some(true)),
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
            let found = Precondition::from_request(&request)
                .map(|wanted| wanted.is_met_by(&entity_tag(b"hello")));
            assert_eq!(found, expected, "{header}");
        }
        let bare = TestRequest::default().to_http_request();
        assert_eq!(Precondition::from_request(&bare), None);
    }
}
