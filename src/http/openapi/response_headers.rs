//! The headers of responses. The components of the document describe each header once, and responses refer to it.

use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::Parameter;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{Ref, RefOr};

use crate::http::respond::code::ErrorCode;

/// A header: its name, its name in the components of the document, the type of its value, and its description.
type HeaderDescription = (&'static str, &'static str, Type, &'static str);

const REQUEST_ID: HeaderDescription = (
    "x-request-id",
    "RequestId",
    Type::String,
    "the id of the request, to quote in a report: the caller's own, or a new one",
);
const WARNING: HeaderDescription = (
    "x-system-warning",
    "SystemWarning",
    Type::String,
    "what is odd but was accepted, such as an unknown field; once for each warning",
);
const LIMIT: HeaderDescription = (
    "x-ratelimit-limit",
    "RateLimitLimit",
    Type::Integer,
    "how many calls the limit allows",
);
const REMAINING: HeaderDescription = (
    "x-ratelimit-remaining",
    "RateLimitRemaining",
    Type::Integer,
    "how many calls are left",
);
const RESET: HeaderDescription = (
    "x-ratelimit-reset",
    "RateLimitReset",
    Type::Integer,
    "when all calls are available again, in seconds since 1970",
);
const ENTITY_TAG: HeaderDescription = (
    "etag",
    "EntityTag",
    Type::String,
    "the tag of the answer, for If-None-Match, and for If-Match of a change",
);
const REPLAYED: HeaderDescription = (
    "idempotent-replayed",
    "IdempotentReplayed",
    Type::Boolean,
    "true if this is the first answer to the same Idempotency-Key again",
);
const RETRY_AFTER: HeaderDescription = (
    "retry-after",
    "RetryAfter",
    Type::Integer,
    "after how many seconds the same call may succeed",
);
const CHALLENGE: HeaderDescription = (
    "www-authenticate",
    "WwwAuthenticate",
    Type::String,
    "how to name the key",
);
const DUPLICATE: HeaderDescription = (
    "x-duplicate",
    "Duplicate",
    Type::String,
    "`identical` if the stored invoice was made of the same content, or `different`",
);
const NEXT_CURSOR: HeaderDescription = (
    "x-next-cursor",
    "NextCursor",
    Type::String,
    "the `cursor` of the next page; absent on the last",
);
const NEXT_LINK: HeaderDescription = (
    "link",
    "NextLink",
    Type::String,
    "the address of the next page as `<…>; rel=\"next\"` (RFC 8288); absent on the last",
);

const LOCATION: HeaderDescription = (
    "location",
    "Location",
    Type::String,
    "the address that tells how far the work has come; absent where several things are under way",
);

const ALL: [HeaderDescription; 13] = [
    REQUEST_ID,
    WARNING,
    LIMIT,
    REMAINING,
    RESET,
    ENTITY_TAG,
    REPLAYED,
    RETRY_AFTER,
    CHALLENGE,
    DUPLICATE,
    NEXT_CURSOR,
    NEXT_LINK,
    LOCATION,
];

/// The facts about an operation that decide which headers its answers have.
#[derive(Clone, Copy)]
pub(super) struct HeaderFacts<'d> {
    pub(super) path: &'static str,
    pub(super) status: u16,
    /// True if the operation needs a key.
    pub(super) is_keyed: bool,
    pub(super) is_read: bool,
    /// True if the answer is an invoice that was stored before.
    pub(super) is_duplicate: bool,
    pub(super) parameters: &'d [Parameter],
}

impl HeaderFacts<'_> {
    /// True if the response has an entity tag, so that a caller who already has the current response gets 304.
    pub(super) fn has_entity_tag(self) -> bool {
        self.is_read && (self.is_keyed || self.path == "/openapi.json")
    }

    /// True if the call counts against the rate limit.
    fn counts_against_rate_limit(self) -> bool {
        self.path.starts_with("/v1/")
    }

    /// True if headers of the response lead to the next page. A list that has its next cursor in the body takes no
    /// `per_page`.
    fn has_next_page_headers(self) -> bool {
        self.has_parameter("cursor") && self.has_parameter("per_page")
    }

    fn has_parameter(self, name: &str) -> bool {
        self.parameters
            .iter()
            .any(|parameter| parameter.name == name)
    }
}

/// Returns the components of the document that describe the headers.
pub(super) fn components() -> impl Iterator<Item = (&'static str, RefOr<Header>)> {
    ALL.into_iter()
        .map(|(_, component, value_type, description)| {
            let header = HeaderBuilder::new()
                .schema(Some(ObjectBuilder::new().schema_type(value_type)))
                .description(Some(description));
            (component, header.build().into())
        })
}

/// Returns the headers of a success.
pub(super) fn success_headers(facts: HeaderFacts<'_>) -> impl Iterator<Item = (&'static str, Ref)> {
    [
        (REQUEST_ID, true),
        (WARNING, facts.is_keyed),
        (LIMIT, facts.counts_against_rate_limit()),
        (REMAINING, facts.counts_against_rate_limit()),
        (RESET, facts.counts_against_rate_limit()),
        (ENTITY_TAG, facts.has_entity_tag()),
        (REPLAYED, facts.has_parameter("Idempotency-Key")),
        (DUPLICATE, facts.is_duplicate),
        (NEXT_CURSOR, facts.has_next_page_headers()),
        (NEXT_LINK, facts.has_next_page_headers()),
        (LOCATION, facts.status == 202),
    ]
    .into_iter()
    .filter_map(|(header, is_present)| is_present.then(|| header_reference(&header)))
}

/// Returns the headers of a failure with this status and these codes. A failure of the authority is temporary, also where
/// its status is 500, as in Transmit and Report.
pub(super) fn failure_headers(
    status: u16,
    codes: &[ErrorCode],
) -> impl Iterator<Item = (&'static str, Ref)> {
    let temporary_codes = [
        ErrorCode::IdempotencyInProgress,
        ErrorCode::AuthorityUnavailable,
    ];
    let is_temporary = matches!(status, 429 | 502 | 503 | 504)
        || codes.iter().any(|code| temporary_codes.contains(code));
    [
        (REQUEST_ID, true),
        (RETRY_AFTER, is_temporary),
        (CHALLENGE, status == 401),
    ]
    .into_iter()
    .filter_map(|(header, is_present)| is_present.then(|| header_reference(&header)))
}

fn header_reference(header: &HeaderDescription) -> (&'static str, Ref) {
    let (name, component, ..) = *header;
    (name, Ref::new(format!("#/components/headers/{component}")))
}
