//! Gets access tokens (RFC 6749). The requests use the guarded client and its limits, because the server is untrusted.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use url::form_urlencoded::{Serializer, byte_serialize};

use super::credentials::Credentials;
use super::fault::{AuthFault, TokenError};
use crate::attempt::{AttemptOutcome, AttemptResult};
use crate::http::client::{GuardedClient, PostRequest};

/// The largest number of response bytes that are read.
const ANSWER_BYTES_MAX: usize = 64 * 1_024;
/// The lifetime of a token whose response has no `expires_in`.
const LIFETIME_DEFAULT: Duration = Duration::from_mins(5);
/// The longest lifetime of a token, whatever the server says.
const LIFETIME_MAX: Duration = Duration::from_hours(24);
/// A token is no longer used when only a tenth of its lifetime is left, or only this much, whichever is shorter.
const END_MARGIN_MAX: Duration = Duration::from_mins(1);

/// A request for an access token. With a refresh token it uses the grant `refresh_token`, else `client_credentials`.
#[derive(Debug, Clone, Copy)]
pub struct AccessTokenRequest<'a> {
    pub token_url: &'a str,
    pub client_id: &'a str,
    pub client_secret: &'a SecretString,
    /// True if the id and the secret are sent in the body, false if they are sent as Basic credentials (RFC 6749,
    /// section 2.3.1).
    pub has_secret_in_body: bool,
    pub scope: Option<&'a str>,
    pub refresh_token: Option<&'a SecretString>,
}

/// A token that the server has issued.
#[derive(Debug, Clone)]
pub struct Token {
    pub access_token: SecretString,
    /// The time for which the token may be used from now on.
    pub lifetime: Duration,
    /// The new refresh token, if the server has replaced the one that was used.
    pub refresh_token: Option<SecretString>,
}

/// Requests an access token.
pub async fn fetch(
    client: &GuardedClient,
    request: AccessTokenRequest<'_>,
) -> Result<Token, AuthFault> {
    let (headers, body) = headers_and_body(request);
    let credentials = client_credentials(request)?;
    let post = PostRequest {
        url: request.token_url,
        headers: &headers,
        body: body.as_bytes(),
        keep_bytes: ANSWER_BYTES_MAX,
    };
    let attempt = client.post_with_credentials(post, &credentials).await;
    read_token(&attempt)
}

/// Reads the token, or the reason why there is none, from the server's response.
pub fn read_token(attempt: &AttemptResult) -> Result<Token, AuthFault> {
    let answer: Map<String, Value> =
        strict_json::from_untrusted(attempt.response_head.as_bytes()).unwrap_or_default();
    match attempt.outcome {
        AttemptOutcome::Delivered => read_members(&answer),
        AttemptOutcome::Forbidden(fault) => Err(AuthFault::TokenForbidden(fault)),
        _ => Err(attempt
            .status
            .map_or(AuthFault::TokenUnreachable, |status| {
                token_refusal(status, &answer)
            })),
    }
}

fn token_refusal(status: u16, answer: &Map<String, Value>) -> AuthFault {
    match answer
        .get("error")
        .and_then(Value::as_str)
        .and_then(TokenError::parse)
    {
        Some(error) => AuthFault::TokenRefused { status, error },
        None => AuthFault::TokenStatus(status),
    }
}

type Headers = Vec<(&'static str, String)>;

fn headers_and_body(request: AccessTokenRequest<'_>) -> (Headers, String) {
    let headers = vec![
        (
            "content-type",
            "application/x-www-form-urlencoded".to_owned(),
        ),
        ("accept", "application/json".to_owned()),
    ];
    let mut form = Serializer::new(String::new());
    match request.refresh_token {
        Some(refresh_token) => {
            form.append_pair("grant_type", "refresh_token")
                .append_pair("refresh_token", refresh_token.expose_secret());
        }
        None => drop(form.append_pair("grant_type", "client_credentials")),
    }
    if let Some(scope) = request.scope {
        form.append_pair("scope", scope);
    }
    if request.has_secret_in_body {
        form.append_pair("client_id", request.client_id)
            .append_pair("client_secret", request.client_secret.expose_secret());
    }
    (headers, form.finish())
}

/// Builds the client's credentials. For Basic, id and secret are each form-encoded (RFC 6749, section 2.3.1).
fn client_credentials(request: AccessTokenRequest<'_>) -> Result<Credentials, AuthFault> {
    if request.has_secret_in_body {
        return Ok(Credentials::none());
    }
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    Credentials::basic(
        &encoded(request.client_id),
        &encoded(request.client_secret.expose_secret()),
    )
}

fn read_members(answer: &Map<String, Value>) -> Result<Token, AuthFault> {
    let text = |name: &str| {
        answer
            .get(name)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let is_bearer = text("token_type").is_none_or(|kind| kind.eq_ignore_ascii_case("bearer"));
    let access = text("access_token")
        .filter(|token| is_bearer && token.bytes().all(|byte| byte.is_ascii_graphic()));
    let secret = |text: &str| SecretString::from(text.to_owned());
    Ok(Token {
        access_token: access.map(secret).ok_or(AuthFault::TokenUnreadable)?,
        lifetime: token_lifetime(answer.get("expires_in")),
        refresh_token: text("refresh_token").map(secret),
    })
}

/// Computes how long the token may be used. Some servers send `expires_in` as a string.
fn token_lifetime(expires_in: Option<&Value>) -> Duration {
    let seconds =
        expires_in.and_then(|value| value.as_u64().or_else(|| value.as_str()?.parse().ok()));
    let lifetime = seconds
        .map_or(LIFETIME_DEFAULT, Duration::from_secs)
        .min(LIFETIME_MAX);
    lifetime.saturating_sub(END_MARGIN_MAX.min(lifetime / 10))
}

#[cfg(test)]
mod tests {
    use address_policy::{AddressPolicy, UrlFault};
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::*;
    use crate::testing::{AfterResponse, TestReceiver};

    fn client_secret() -> SecretString {
        "s:e&cret".into()
    }

    fn request<'a>(url: &'a str, client_secret: &'a SecretString) -> AccessTokenRequest<'a> {
        AccessTokenRequest {
            token_url: url,
            client_id: "erp client",
            client_secret,
            has_secret_in_body: true,
            scope: Some("notify write"),
            refresh_token: None,
        }
    }

    fn guarded_client(allowed: &[&str]) -> GuardedClient {
        let allowed = allowed
            .iter()
            .map(|network| network.parse().unwrap())
            .collect();
        GuardedClient::new(
            AddressPolicy::new(allowed),
            Duration::from_secs(10),
            ANSWER_BYTES_MAX,
            "caller/1.0",
        )
        .unwrap()
    }

    async fn fetch_token(url: &str) -> Result<Token, AuthFault> {
        let secret = client_secret();
        fetch(&guarded_client(&["127.0.0.0/8"]), request(url, &secret)).await
    }

    #[test]
    fn a_request_names_the_grant_and_the_client() {
        let secret = client_secret();
        let by_credentials = request("", &secret);
        let (headers, form) = headers_and_body(by_credentials);
        assert_eq!(
            form,
            "grant_type=client_credentials&scope=notify+write&client_id=erp+client&client_secret=s%3Ae%26cret"
        );
        assert_eq!(headers.len(), 2);
        let refresh_token = SecretString::from("r=1");
        let by_refresh_token = AccessTokenRequest {
            has_secret_in_body: false,
            refresh_token: Some(&refresh_token),
            ..by_credentials
        };
        let (headers, form) = headers_and_body(by_refresh_token);
        assert_eq!(
            form,
            "grant_type=refresh_token&refresh_token=r%3D1&scope=notify+write"
        );
        assert_eq!(headers.len(), 2);
        let sent = client_credentials(by_refresh_token).unwrap().headers();
        assert_eq!(
            sent["authorization"],
            format!("Basic {}", STANDARD.encode("erp+client:s%3Ae%26cret"))
        );
    }

    #[test]
    fn a_token_is_used_until_shortly_before_its_end() {
        for (expires_in, seconds) in [
            (json!(3_600), 3_540),
            (json!("3600"), 3_540),
            (json!(100), 90),
            (json!(1), 1),
            (json!(0), 0),
            (json!("soon"), 270),
            (Value::Null, 270),
            (json!(u64::MAX), 24 * 3_600 - 60),
        ] {
            assert_eq!(
                token_lifetime(Some(&expires_in))
                    .as_millis()
                    .div_ceil(1_000),
                seconds,
                "{expires_in}"
            );
        }
        assert_eq!(token_lifetime(None).as_secs(), 270);
    }

    #[tokio::test]
    async fn anything_but_a_bearer_token_is_a_fault() {
        let good = json!({ "access_token": "t1", "token_type": "Bearer", "expires_in": 60, "refresh_token": "r1" });
        let server = TestReceiver::with_answer(200, "", &good.to_string()).await;
        let token = fetch_token(&server.url("/token")).await.unwrap();
        assert_eq!(
            (
                token.access_token.expose_secret(),
                token.refresh_token.unwrap().expose_secret()
            ),
            ("t1", "r1")
        );
        assert!(
            server.connections()[0].contains("content-type: application/x-www-form-urlencoded")
        );
        let long = json!({ "access_token": "x".repeat(ANSWER_BYTES_MAX) }).to_string();
        for answer in [
            "",
            "<html>",
            "[]",
            r#"{"access_token":""}"#,
            r#"{"access_token":7}"#,
            r#"{"access_token":"a\nb"}"#,
            r#"{"access_token":"t","token_type":"mac"}"#,
            &long,
        ] {
            let server = TestReceiver::with_answer(200, "", answer).await;
            let fault = fetch_token(&server.url("/token")).await.unwrap_err();
            assert_eq!(fault, AuthFault::TokenUnreadable, "{answer:.40}");
        }
    }

    #[tokio::test]
    async fn a_refusal_is_reported_by_its_code_only() {
        for (status, answer, fault) in [
            (
                400,
                r#"{"error":"invalid_grant","error_description":"token hush expired"}"#,
                AuthFault::TokenRefused {
                    status: 400,
                    error: TokenError::InvalidGrant,
                },
            ),
            (
                401,
                r#"{"error":"invalid_client"}"#,
                AuthFault::TokenRefused {
                    status: 401,
                    error: TokenError::InvalidClient,
                },
            ),
            (400, r#"{"error":"hush"}"#, AuthFault::TokenStatus(400)),
            (500, "hush", AuthFault::TokenStatus(500)),
            (302, "", AuthFault::TokenStatus(302)),
            (410, "", AuthFault::TokenStatus(410)),
        ] {
            let server =
                TestReceiver::with_answer(status, "location: http://127.0.0.1:9/\r\n", answer)
                    .await;
            let said = fetch_token(&server.url("/token")).await.unwrap_err();
            assert_eq!(said, fault);
            assert!(!said.to_string().contains("hush"));
        }
        assert_eq!(
            fetch_token("http://127.0.0.1:9/token").await.unwrap_err(),
            AuthFault::TokenUnreachable
        );
        let cut = TestReceiver::start("", AfterResponse::Close).await;
        assert_eq!(
            fetch_token(&cut.url("/")).await.unwrap_err(),
            AuthFault::TokenUnreachable
        );
    }

    #[tokio::test]
    async fn a_token_endpoint_is_called_where_webhooks_may_be_called_and_nowhere_else() {
        let server = TestReceiver::with_answer(200, "", r#"{"access_token":"t"}"#).await;
        let port = server.address.port();
        for url in [
            server.url("/"),
            format!("https://127.0.0.1:{port}/"),
            format!("https://localhost:{port}/"),
        ] {
            let secret = client_secret();
            let wanted = AccessTokenRequest {
                has_secret_in_body: false,
                ..request(&url, &secret)
            };
            let fault = fetch(&guarded_client(&[]), wanted).await.unwrap_err();
            assert!(
                matches!(
                    fault,
                    AuthFault::TokenForbidden(UrlFault::AddressRefused | UrlFault::Scheme)
                ),
                "{url}"
            );
        }
        assert_eq!(server.connections(), [""; 0]);
    }
}
