//! The integration settings of a taxpayer's ERP: the authentication and the format of a webhook request.

pub mod origin;

use address_policy::AllowedNetwork;
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::domain::integration::origin::Origin;
use crate::domain::kernel::codes::words;

words! {
    /// The type of authentication of a webhook request (spec.md, "Option lists").
    AuthType {
        None = "none",
        Basic = "basic",
        ApiKey = "api_key",
        OAuth2 = "oauth2",
        Ntlm = "ntlm",
        ClientCredentials = "client_credentials",
    }
}

words! {
    /// The format of the body of a webhook request (spec.md, "Option lists").
    DataFormat { Rest = "rest", Soap = "soap", GraphQl = "graphql", OData = "odata", JsonRpc = "jsonrpc" }
}

words! {
    /// The way in which a client authenticates itself to a token endpoint (RFC 6749, section 2.3.1).
    ClientAuthentication { Basic = "basic", Body = "body" }
}

/// The integration settings of one taxpayer.
#[derive(Debug, Clone, Default)]
pub struct Integration {
    pub erp_system: Option<String>,
    pub auth: Auth,
    /// The origin of the URL for which the credentials were set; `None` for credentials that an old version stored.
    pub origin: Option<Origin>,
    pub format: Format,
    /// The private networks in which the endpoint may be, in addition to those that the deployment allows.
    pub allowed_networks: Vec<AllowedNetwork>,
    /// Increases with each change of the settings, so that caches of derived data can detect the change.
    pub version: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The parts of an integration that are not secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntegrationSummary {
    pub erp_system: Option<String>,
    pub auth_type: AuthType,
    pub data_format: DataFormat,
}

/// A secret text. Only `expose` and serialisation reveal it. Serialise it only for the vault, which encrypts secrets
/// for storage.
#[derive(Debug, Clone, Default)]
pub struct SecretText(SecretString);

/// The authentication of a webhook request. `S` is `Option<SecretText>` in a request, which may leave out a secret that
/// is already stored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Auth<S = SecretText> {
    #[default]
    None,
    Basic {
        username: String,
        password: S,
    },
    ApiKey {
        header: String,
        value: S,
    },
    #[serde(rename = "oauth2")]
    OAuth2 {
        client: TokenClient<S>,
        refresh_token: S,
    },
    ClientCredentials {
        client: TokenClient<S>,
    },
    Ntlm {
        username: String,
        password: S,
        domain: Option<String>,
    },
}

/// The OAuth client that this service uses to request tokens from a token endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenClient<S = SecretText> {
    pub token_url: String,
    pub client_id: String,
    pub client_secret: S,
    pub scope: Option<String>,
    pub authentication: ClientAuthentication,
}

/// The format of a webhook request's body, with the names that the body needs, such as the SOAP action.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Format {
    #[default]
    Rest,
    Soap {
        action: String,
        namespace: String,
        method: String,
    },
    GraphQl {
        mutation: String,
    },
    OData,
    JsonRpc {
        method: String,
    },
}

impl Integration {
    /// True if a request to this URL may carry the credentials: they were set for the origin of the URL, or there are
    /// none.
    pub fn may_authenticate_at(&self, url: &str) -> bool {
        self.auth.kind() == AuthType::None
            || (self.origin.is_some() && self.origin == Origin::from_url(url))
    }

    /// Returns the names of the settings that differ from `before`.
    pub fn changed_fields_since(&self, before: &Self) -> Vec<&'static str> {
        [
            ("erp_system", self.erp_system != before.erp_system),
            ("auth", self.auth != before.auth),
            ("origin", self.origin != before.origin),
            ("format", self.format != before.format),
            (
                "allowed_networks",
                self.allowed_networks != before.allowed_networks,
            ),
        ]
        .into_iter()
        .filter_map(|(name, is_changed)| is_changed.then_some(name))
        .collect()
    }

    pub fn summary(&self) -> IntegrationSummary {
        IntegrationSummary {
            erp_system: self.erp_system.clone(),
            auth_type: self.auth.kind(),
            data_format: self.format.kind(),
        }
    }
}

impl Default for IntegrationSummary {
    fn default() -> Self {
        Self {
            erp_system: None,
            auth_type: AuthType::None,
            data_format: DataFormat::Rest,
        }
    }
}

impl SecretText {
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Returns the text as the type that other crates take.
    pub fn as_secret(&self) -> &SecretString {
        &self.0
    }

    pub fn has_same_text(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl PartialEq for SecretText {
    fn eq(&self, other: &Self) -> bool {
        self.has_same_text(other)
    }
}

impl From<SecretString> for SecretText {
    fn from(text: SecretString) -> Self {
        Self(text)
    }
}

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl Serialize for SecretText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.expose())
    }
}

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

impl<S> Auth<S> {
    pub fn kind(&self) -> AuthType {
        match self {
            Self::None => AuthType::None,
            Self::Basic { .. } => AuthType::Basic,
            Self::ApiKey { .. } => AuthType::ApiKey,
            Self::OAuth2 { .. } => AuthType::OAuth2,
            Self::ClientCredentials { .. } => AuthType::ClientCredentials,
            Self::Ntlm { .. } => AuthType::Ntlm,
        }
    }

    /// Returns the client that requests tokens; `None` if this type of authentication needs no tokens.
    pub fn token_client(&self) -> Option<&TokenClient<S>> {
        match self {
            Self::OAuth2 { client, .. } | Self::ClientCredentials { client } => Some(client),
            _ => None,
        }
    }

    /// Returns each secret with the name of its field.
    pub fn secrets(&self) -> Vec<(&'static str, &S)> {
        match self {
            Self::None => vec![],
            Self::Basic { password, .. } | Self::Ntlm { password, .. } => {
                vec![("password", password)]
            }
            Self::ApiKey { value, .. } => vec![("value", value)],
            Self::OAuth2 {
                client,
                refresh_token,
            } => {
                vec![
                    ("client_secret", &client.client_secret),
                    ("refresh_token", refresh_token),
                ]
            }
            Self::ClientCredentials { client } => vec![("client_secret", &client.client_secret)],
        }
    }

    /// Replaces each secret by the result of `secret(field name, old secret)`.
    fn map_secrets<T>(self, mut secret: impl FnMut(&'static str, S) -> T) -> Auth<T> {
        match self {
            Self::None => Auth::None,
            Self::Basic { username, password } => Auth::Basic {
                username,
                password: secret("password", password),
            },
            Self::ApiKey { header, value } => Auth::ApiKey {
                header,
                value: secret("value", value),
            },
            Self::OAuth2 {
                client,
                refresh_token,
            } => Auth::OAuth2 {
                client: client.map_secret(&mut secret),
                refresh_token: secret("refresh_token", refresh_token),
            },
            Self::ClientCredentials { client } => Auth::ClientCredentials {
                client: client.map_secret(&mut secret),
            },
            Self::Ntlm {
                username,
                password,
                domain,
            } => Auth::Ntlm {
                username,
                password: secret("password", password),
                domain,
            },
        }
    }

    /// Returns the origin of the token endpoint, the only origin to which a stored client secret is sent.
    fn token_origin(&self) -> Option<Origin> {
        Origin::from_url(&self.token_client()?.token_url)
    }
}

impl<S> TokenClient<S> {
    fn map_secret<T>(self, secret: &mut impl FnMut(&'static str, S) -> T) -> TokenClient<T> {
        TokenClient {
            token_url: self.token_url,
            client_id: self.client_id,
            client_secret: secret("client_secret", self.client_secret),
            scope: self.scope,
            authentication: self.authentication,
        }
    }
}

impl Auth<Option<SecretText>> {
    /// Fills in missing secrets from `stored`, if both have the same type and the same origin of the token endpoint.
    /// The error lists the names of the secrets that are still missing.
    pub fn fill_secrets(self, stored: Option<&Auth>) -> Result<Auth, Vec<&'static str>> {
        let same = stored.filter(|stored| {
            stored.kind() == self.kind() && stored.token_origin() == self.token_origin()
        });
        let kept = same.map(Auth::secrets).unwrap_or_default();
        let mut missing = Vec::new();
        let auth = self.map_secrets(|name, sent| {
            let kept = || {
                kept.iter()
                    .find(|(field, _)| *field == name)
                    .map(|(_, secret)| (*secret).clone())
            };
            sent.or_else(kept).unwrap_or_else(|| {
                missing.push(name);
                SecretText::default()
            })
        });
        if missing.is_empty() {
            Ok(auth)
        } else {
            Err(missing)
        }
    }
}

impl Auth {
    pub fn refresh_token(&self) -> Option<&SecretText> {
        match self {
            Self::OAuth2 { refresh_token, .. } => Some(refresh_token),
            _ => None,
        }
    }

    /// Replaces the refresh token `used` by `new_token`. Returns `None` if the stored token is no longer `used`, so
    /// that an old answer does not overwrite a newer token.
    pub fn replace_refresh_token(&self, used: &SecretText, new_token: &SecretText) -> Option<Self> {
        match self {
            Self::OAuth2 {
                client,
                refresh_token,
            } if refresh_token.has_same_text(used) => Some(Self::OAuth2 {
                client: client.clone(),
                refresh_token: new_token.clone(),
            }),
            _ => None,
        }
    }
}

impl Format {
    pub fn kind(&self) -> DataFormat {
        match self {
            Self::Rest => DataFormat::Rest,
            Self::Soap { .. } => DataFormat::Soap,
            Self::GraphQl { .. } => DataFormat::GraphQl,
            Self::OData => DataFormat::OData,
            Self::JsonRpc { .. } => DataFormat::JsonRpc,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn basic_auth(password: Option<&str>) -> Auth<Option<SecretText>> {
        Auth::Basic {
            username: "ada".into(),
            password: password.map(|text| text.to_owned().into()),
        }
    }

    fn client(url: &str, secret: Option<&str>) -> Auth<Option<SecretText>> {
        let client = TokenClient {
            token_url: url.into(),
            client_id: "c".into(),
            client_secret: secret.map(|text| text.to_owned().into()),
            scope: None,
            authentication: ClientAuthentication::Basic,
        };
        Auth::OAuth2 {
            client,
            refresh_token: secret.map(|text| text.to_owned().into()),
        }
    }

    fn texts(auth: &Auth) -> Vec<&str> {
        auth.secrets()
            .into_iter()
            .map(|(_, secret)| secret.expose())
            .collect()
    }

    #[test]
    fn a_secret_that_is_not_sent_is_the_stored_one_of_the_same_type() {
        let stored = basic_auth(Some("one")).fill_secrets(None).unwrap();
        assert_eq!(
            texts(&basic_auth(None).fill_secrets(Some(&stored)).unwrap()),
            ["one"]
        );
        assert_eq!(
            texts(&basic_auth(Some("two")).fill_secrets(Some(&stored)).unwrap()),
            ["two"]
        );
        assert_eq!(
            basic_auth(None).fill_secrets(None).unwrap_err(),
            ["password"]
        );
        let ntlm = Auth::Ntlm {
            username: "ada".into(),
            password: None,
            domain: None,
        };
        assert_eq!(ntlm.fill_secrets(Some(&stored)).unwrap_err(), ["password"]);
        assert!(
            Auth::None
                .fill_secrets(Some(&stored))
                .unwrap()
                .secrets()
                .is_empty()
        );
    }

    #[test]
    fn a_stored_secret_goes_to_no_other_token_endpoint() {
        let stored = client("https://a.example/token", Some("s"))
            .fill_secrets(None)
            .unwrap();
        let other_path = client("https://a.example/oauth/token", None);
        assert_eq!(
            texts(&other_path.fill_secrets(Some(&stored)).unwrap()),
            ["s", "s"]
        );
        for url in [
            "https://b.example/token",
            "https://a.example:8443/token",
            "http://a.example/token",
        ] {
            let missing = client(url, None).fill_secrets(Some(&stored)).unwrap_err();
            assert_eq!(missing, ["client_secret", "refresh_token"], "{url}");
        }
    }

    #[test]
    fn credentials_go_to_the_origin_they_were_set_for() {
        let auth = basic_auth(Some("one")).fill_secrets(None).unwrap();
        let bound = |origin: &str| Integration {
            auth: auth.clone(),
            origin: Origin::from_url(origin),
            ..Integration::default()
        };
        let erp = bound("https://erp.example/a");
        for url in [
            "https://erp.example/",
            "https://ERP.example:443/b?c",
            "https://erp.example",
        ] {
            assert!(erp.may_authenticate_at(url), "{url}");
        }
        for url in [
            "http://erp.example/",
            "https://erp.example:8443/",
            "https://erp.example.evil.example/",
            "https://erp.example@evil.example/",
            "https://evil.example/https://erp.example/",
            "nonsense",
        ] {
            assert!(!erp.may_authenticate_at(url), "{url}");
        }
        assert!(
            !bound("nonsense").may_authenticate_at("nonsense"),
            "no origin is the same as none"
        );
        assert!(
            Integration::default().may_authenticate_at("https://anywhere.example/"),
            "nothing to send"
        );
    }

    #[test]
    fn only_the_refresh_token_that_was_used_is_replaced() {
        let stored = client("https://a.example/token", Some("r0"))
            .fill_secrets(None)
            .unwrap();
        let secret = |text: &str| SecretText::from(text.to_owned());
        assert_eq!(
            texts(
                &stored
                    .replace_refresh_token(&secret("r0"), &secret("r1"))
                    .unwrap()
            ),
            ["r0", "r1"]
        );
        assert!(
            stored
                .replace_refresh_token(&secret("other"), &secret("r1"))
                .is_none()
        );
        assert!(
            Auth::None
                .replace_refresh_token(&secret("r0"), &secret("r1"))
                .is_none()
        );
    }

    #[test]
    fn no_debug_shows_a_secret_and_the_sealed_text_holds_them_all() {
        let auth = client("https://a.example/token", Some("hush"))
            .fill_secrets(None)
            .unwrap();
        assert!(!format!("{auth:?}").contains("hush"));
        let text = serde_json::to_string(&auth).unwrap();
        let again: Auth = strict_json::from_trusted(&text).unwrap();
        assert_eq!(
            (texts(&again), again.kind()),
            (vec!["hush", "hush"], AuthType::OAuth2)
        );
        for format in [
            Format::Rest,
            Format::OData,
            Format::GraphQl {
                mutation: "m".into(),
            },
        ] {
            let text = serde_json::to_string(&format).unwrap();
            assert_eq!(strict_json::from_trusted::<Format>(&text).unwrap(), format);
            assert!(text.contains(format.kind().as_str()), "{text}");
        }
    }
}
