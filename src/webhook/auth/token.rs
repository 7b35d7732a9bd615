//! Gets access tokens (RFC 6749). The requests use the guarded client and its limits, because the server is untrusted.

use std::time::Duration;

use serde_json::{Map, Value};
use url::form_urlencoded::{Serializer, byte_serialize};

use super::credentials::Credentials;
use super::fault::{AuthFault, TokenError};
use crate::domain::integration::{Auth, ClientAuthentication, SecretText, TokenClient};
use crate::webhook::attempt::{AttemptOutcome, AttemptResult};
use crate::webhook::http::client::{GuardedClient, PostRequest};

/// The largest number of response bytes that are read.
const ANSWER_BYTES_MAX: usize = 64 * 1_024;
/// The lifetime of a token whose response has no `expires_in`.
const LIFETIME_DEFAULT: Duration = Duration::from_mins(5);
/// The longest lifetime of a token, whatever the server says.
const LIFETIME_MAX: Duration = Duration::from_hours(24);
/// A token is no longer used when only a tenth of its lifetime is left, or only this much, whichever is shorter.
const END_MARGIN_MAX: Duration = Duration::from_mins(1);

/// A token that the server has issued.
#[derive(Debug, Clone)]
pub struct Token {
    pub access_token: SecretText,
    /// How long the token may be used from now on.
    pub lifetime: Duration,
    /// The new refresh token, if the server has replaced the one that was used.
    pub refresh_token: Option<SecretText>,
}

/// Requests an access token. Fails with `Changed` if the settings no longer have a token client.
pub async fn fetch(client: &GuardedClient, auth: &Auth) -> Result<Token, AuthFault> {
    let token_client = auth.token_client().ok_or(AuthFault::Changed)?;
    let (headers, body) = headers_and_body(token_client, auth);
    let credentials = credentials(token_client)?;
    let post = PostRequest {
        url: &token_client.token_url,
        headers: &headers,
        body: body.as_bytes(),
        keep_bytes: ANSWER_BYTES_MAX,
    };
    let attempt = client.post_with_credentials(post, &credentials).await;
    read_answer(&attempt)
}

/// Reads the token, or the reason why there is none, from the server's response.
pub(in crate::webhook) fn read_answer(attempt: &AttemptResult) -> Result<Token, AuthFault> {
    let answer: Map<String, Value> =
        strict_json::from_untrusted(attempt.response_head.as_bytes()).unwrap_or_default();
    match attempt.outcome {
        AttemptOutcome::Delivered => read_token(&answer),
        AttemptOutcome::Forbidden(fault) => Err(AuthFault::TokenForbidden(fault)),
        _ => Err(attempt
            .status
            .map_or(AuthFault::TokenUnreachable, |status| {
                refusal(status, &answer)
            })),
    }
}

fn refusal(status: u16, answer: &Map<String, Value>) -> AuthFault {
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

fn headers_and_body(client: &TokenClient, auth: &Auth) -> (Headers, String) {
    let headers = vec![
        (
            "content-type",
            "application/x-www-form-urlencoded".to_owned(),
        ),
        ("accept", "application/json".to_owned()),
    ];
    let mut form = Serializer::new(String::new());
    match auth {
        Auth::OAuth2 { refresh_token, .. } => {
            form.append_pair("grant_type", "refresh_token")
                .append_pair("refresh_token", refresh_token.expose());
        }
        _ => drop(form.append_pair("grant_type", "client_credentials")),
    }
    if let Some(scope) = &client.scope {
        form.append_pair("scope", scope);
    }
    if client.authentication == ClientAuthentication::Body {
        form.append_pair("client_id", &client.client_id)
            .append_pair("client_secret", client.client_secret.expose());
    }
    (headers, form.finish())
}

/// Builds the client's credentials. For Basic, id and secret are each form-encoded (RFC 6749, section 2.3.1).
fn credentials(client: &TokenClient) -> Result<Credentials, AuthFault> {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    match client.authentication {
        ClientAuthentication::Basic => Credentials::basic(
            &encoded(&client.client_id),
            &encoded(client.client_secret.expose()),
        ),
        ClientAuthentication::Body => Ok(Credentials::none()),
    }
}

fn read_token(answer: &Map<String, Value>) -> Result<Token, AuthFault> {
    let text = |name: &str| {
        answer
            .get(name)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let is_bearer = text("token_type").is_none_or(|kind| kind.eq_ignore_ascii_case("bearer"));
    let access = text("access_token")
        .filter(|token| is_bearer && token.bytes().all(|byte| byte.is_ascii_graphic()));
    let secret = |text: &str| SecretText::from(text.to_owned());
    Ok(Token {
        access_token: access.map(secret).ok_or(AuthFault::TokenUnreadable)?,
        lifetime: lifetime(answer.get("expires_in")),
        refresh_token: text("refresh_token").map(secret),
    })
}

/// Computes how long the token may be used. Some servers send `expires_in` as a string.
fn lifetime(expires_in: Option<&Value>) -> Duration {
    let seconds =
        expires_in.and_then(|value| value.as_u64().or_else(|| value.as_str()?.parse().ok()));
    let lifetime = seconds
        .map_or(LIFETIME_DEFAULT, Duration::from_secs)
        .min(LIFETIME_MAX);
    lifetime.saturating_sub(END_MARGIN_MAX.min(lifetime / 10))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::*;
    use crate::webhook::http::address::AddressPolicy;
    use crate::webhook::http::destination::UrlFault;
    use crate::webhook::testing::{AfterResponse, TestReceiver};

    fn client(url: &str, authentication: ClientAuthentication) -> TokenClient {
        TokenClient {
            token_url: url.into(),
            client_id: "erp client".into(),
            client_secret: "s:e&cret".to_owned().into(),
            scope: Some("notify write".into()),
            authentication,
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
        )
        .unwrap()
    }

    async fn fetch_token(url: &str) -> Result<Token, AuthFault> {
        let auth = Auth::ClientCredentials {
            client: client(url, ClientAuthentication::Body),
        };
        fetch(&guarded_client(&["127.0.0.0/8"]), &auth).await
    }

    #[test]
    fn a_request_names_the_grant_and_the_client() {
        let auth = Auth::ClientCredentials {
            client: client("", ClientAuthentication::Body),
        };
        let (headers, form) = headers_and_body(auth.token_client().unwrap(), &auth);
        assert_eq!(
            form,
            "grant_type=client_credentials&scope=notify+write&client_id=erp+client&client_secret=s%3Ae%26cret"
        );
        assert_eq!(headers.len(), 2);
        let client = client("", ClientAuthentication::Basic);
        let auth = Auth::OAuth2 {
            client,
            refresh_token: "r=1".to_owned().into(),
        };
        let (headers, form) = headers_and_body(auth.token_client().unwrap(), &auth);
        assert_eq!(
            form,
            "grant_type=refresh_token&refresh_token=r%3D1&scope=notify+write"
        );
        assert_eq!(headers.len(), 2);
        let sent = credentials(auth.token_client().unwrap()).unwrap().headers();
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
                lifetime(Some(&expires_in)).as_millis().div_ceil(1_000),
                seconds,
                "{expires_in}"
            );
        }
        assert_eq!(lifetime(None).as_secs(), 270);
    }

    #[tokio::test]
    async fn anything_but_a_bearer_token_is_a_fault() {
        let good = json!({ "access_token": "t1", "token_type": "Bearer", "expires_in": 60, "refresh_token": "r1" });
        let server = TestReceiver::with_answer(200, "", &good.to_string()).await;
        let token = fetch_token(&server.url("/token")).await.unwrap();
        assert_eq!(
            (
                token.access_token.expose(),
                token.refresh_token.unwrap().expose()
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
            let auth = Auth::ClientCredentials {
                client: client(&url, ClientAuthentication::Basic),
            };
            let fault = fetch(&guarded_client(&[]), &auth).await.unwrap_err();
            assert!(
                matches!(
                    fault,
                    AuthFault::TokenForbidden(UrlFault::AddressRefused | UrlFault::Scheme)
                ),
                "{url}"
            );
        }
        assert_eq!(server.connections(), [""; 0]);
        assert_eq!(
            fetch(&guarded_client(&[]), &Auth::None).await.unwrap_err(),
            AuthFault::Changed
        );
    }
}
