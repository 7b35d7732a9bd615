//! Reads the settings for notifying a taxpayer's ERP. A field that the chosen authentication or format does not use is
//! a fault, because the caller would believe that it takes effect.

use address_policy::{AddressPolicy, AllowedNetwork};
use url::Url;
use webhook_client::auth::{API_KEY_HEADER_DEFAULT, is_free_header};
use webhook_client::format::{default_action, is_method_name};

use crate::domain::integration::origin::Origin;
use crate::domain::integration::{
    Auth, AuthType, ClientAuthentication, DataFormat, Format, SecretText, TokenClient,
};
use crate::domain::kernel::field_rule::FieldRule;
use crate::http::forms::field::{Field, LONG_TEXT_CHARS_MAX, TEXT_CHARS_MAX};
use crate::http::forms::integration_fields::{auth_fields, format_settings, refuse_other_fields};
use crate::http::forms::reader::Reader;
use crate::http::forms::webhook;

/// The maximum length of a secret, in characters. It leaves room for long access tokens.
const SECRET_CHARS_MAX: usize = 4_096;
const NETWORKS_FIELD: &str = "allowed_networks";
const NETWORKS_MAX: usize = 20;
/// The maximum length of the text of a GraphQL mutation, in characters.
const MUTATION_CHARS_MAX: usize = 10_000;
const NAMESPACE_DEFAULT: &str = "urn:einvoice:notifications";
const SOAP_METHOD_DEFAULT: &str = "Notify";
const JSONRPC_METHOD_DEFAULT: &str = "einvoice.notify";
const MUTATION_DEFAULT: &str = "mutation Notify($event: JSON!) { notify(event: $event) }";

#[derive(Debug)]
pub(crate) struct Integration {
    pub(crate) erp_system: Option<String>,
    pub(crate) auth: Auth<Option<SecretText>>,
    pub(crate) origin: Option<Origin>,
    pub(crate) format: Format,
    pub(crate) allowed_networks: Vec<AllowedNetwork>,
    pub(crate) reason: Option<String>,
}

pub(crate) fn read(
    reader: &mut Reader<'_>,
    policy: &AddressPolicy,
    erp_systems: &[String],
) -> Option<Integration> {
    let rule = FieldRule::must_be(
        "one_of",
        "one of the erp_systems of GET /v1/core/commons/enums",
    );
    let erp_system = reader
        .optional("erp_system")
        .fitting_text(rule, |text| erp_systems.iter().any(|known| known == text));
    let allowed_networks = read_networks(reader, policy);
    let policy = &policy.with_networks(&allowed_networks);
    let auth_type = reader
        .required("auth_type")
        .word(AuthType::parse, AuthType::allowed_words);
    let data_format = reader
        .required("data_format")
        .word(DataFormat::parse, DataFormat::allowed_words);
    let has_auth = auth_type.is_some_and(|kind| kind != AuthType::None);
    let auth = reader
        .required_if(has_auth, "auth")
        .object(|reader| read_auth(reader, auth_type, policy));
    let origin = read_origin(reader.optional("origin"), policy);
    if auth_type == Some(AuthType::None) && reader.has("origin") {
        reader.report_fault(
            "origin",
            FieldRule::other(
                "prohibited",
                "is for credentials; leave it out where there are none",
            ),
        );
    }
    let settings = reader
        .optional("format")
        .object(|reader| read_format(reader, data_format));
    let reason = reader.optional("reason").long_text(0, LONG_TEXT_CHARS_MAX);
    let format = settings.or_else(|| data_format.map(default_format))?;
    let auth = if has_auth { auth? } else { Auth::None };
    Some(Integration {
        erp_system,
        auth,
        origin,
        format,
        allowed_networks,
        reason,
    })
}

/// Reads the networks, such as private ones, in which this taxpayer's ERP may be called.
fn read_networks(reader: &mut Reader<'_>, policy: &AddressPolicy) -> Vec<AllowedNetwork> {
    let texts = reader
        .optional(NETWORKS_FIELD)
        .texts(TEXT_CHARS_MAX)
        .unwrap_or_default();
    if texts.len() > NETWORKS_MAX {
        let sentence = format!("must not have more than {NETWORKS_MAX} networks");
        reader.report_fault(NETWORKS_FIELD, FieldRule::other("max", sentence));
    }
    let mut networks = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        match policy.check_network(text) {
            Ok(network) => networks.push(network),
            Err(fault) => {
                reader.report_fault(
                    &format!("{NETWORKS_FIELD}.{index}"),
                    FieldRule::other("network", fault.to_string()),
                );
            }
        }
    }
    networks
}

/// Reads the only origin (scheme, host and port) to which credentials are sent. The address policy must allow it.
fn read_origin(field: Field<'_>, policy: &AddressPolicy) -> Option<Origin> {
    let expected = "a scheme, host and port alone, such as https://erp.example.com:8443";
    let text = field.checked_text("origin", "a scheme, host and port", |text| {
        match policy.check_url(text) {
            Ok(url) if url.path() == "/" && url.query().is_none() && url.fragment().is_none() => {
                Ok(())
            }
            Ok(_) => Err(FieldRule::must_be("origin", expected)),
            Err(fault) => Err(webhook::url_rule(fault)),
        }
    })?;
    Origin::from_url(&text)
}

fn read_auth(
    reader: &mut Reader<'_>,
    kind: Option<AuthType>,
    policy: &AddressPolicy,
) -> Option<Auth<Option<SecretText>>> {
    let fields = SentAuth::read(reader, kind.map(auth_fields).unwrap_or_default(), policy);
    if let Some(kind) = kind {
        // The fields of these three types include the fields of all other types.
        let all_fields = [AuthType::Ntlm, AuthType::ApiKey, AuthType::OAuth2]
            .map(auth_fields)
            .concat();
        refuse_other_fields(reader, &all_fields, auth_fields(kind));
    }
    if kind == Some(AuthType::Basic) {
        refuse_colon_in_username(reader, fields.username.as_deref());
    }
    require_visible_ascii(reader, fields.value.as_ref());
    fields.into_auth(kind?)
}

/// The fields of all types of authentication, as they were sent. A field is `None` if it was left out or is at fault.
struct SentAuth {
    username: Option<String>,
    password: Option<SecretText>,
    domain: Option<String>,
    header: Option<String>,
    value: Option<SecretText>,
    client: Option<TokenClient<Option<SecretText>>>,
    refresh_token: Option<SecretText>,
}

impl SentAuth {
    /// Reads the fields of all types of authentication, so that the API document has them all. Only the fields of the
    /// chosen type, `own_fields`, can be required.
    fn read(reader: &mut Reader<'_>, own_fields: &[&str], policy: &AddressPolicy) -> Self {
        let has = |name: &str| own_fields.contains(&name);
        let username = reader
            .required_if(has("username"), "username")
            .text(TEXT_CHARS_MAX);
        let password = read_secret(reader, "password");
        let domain = reader.optional("domain").text(TEXT_CHARS_MAX);
        let expected = "a header name, and none that requests have a meaning of their own for";
        let rule = FieldRule::must_be("header", expected);
        let header = reader.optional("header").fitting_text(rule, is_free_header);
        let value = read_secret(reader, "value");
        let token_url =
            webhook::read_url(reader.required_if(has("token_url"), "token_url"), policy);
        let client_id = reader
            .required_if(has("client_id"), "client_id")
            .text(TEXT_CHARS_MAX);
        let client_secret = read_secret(reader, "client_secret");
        let refresh_token = read_secret(reader, "refresh_token");
        let scope = reader.optional("scope").text(LONG_TEXT_CHARS_MAX);
        let allowed = ClientAuthentication::allowed_words;
        let authentication = reader
            .optional("client_authentication")
            .word(ClientAuthentication::parse, allowed)
            .unwrap_or(ClientAuthentication::Basic);
        let client = token_url
            .zip(client_id)
            .map(|(token_url, client_id)| TokenClient {
                token_url,
                client_id,
                client_secret,
                scope,
                authentication,
            });
        Self {
            username,
            password,
            domain,
            header,
            value,
            client,
            refresh_token,
        }
    }

    fn into_auth(self, kind: AuthType) -> Option<Auth<Option<SecretText>>> {
        Some(match kind {
            AuthType::None => Auth::None,
            AuthType::Basic => Auth::Basic {
                username: self.username?,
                password: self.password,
            },
            AuthType::ApiKey => Auth::ApiKey {
                header: self
                    .header
                    .unwrap_or_else(|| API_KEY_HEADER_DEFAULT.to_owned()),
                value: self.value,
            },
            AuthType::OAuth2 => Auth::OAuth2 {
                client: self.client?,
                refresh_token: self.refresh_token,
            },
            AuthType::ClientCredentials => Auth::ClientCredentials {
                client: self.client?,
            },
            AuthType::Ntlm => Auth::Ntlm {
                username: self.username?,
                password: self.password,
                domain: self.domain,
            },
        })
    }
}

/// Refuses a user name with a colon, which would end the name in the header of basic authentication.
fn refuse_colon_in_username(reader: &Reader<'_>, username: Option<&str>) {
    if username.is_some_and(|name| name.contains(':')) {
        reader.report_fault(
            "username",
            FieldRule::other("format", "must not contain a colon"),
        );
    }
}

fn require_visible_ascii(reader: &Reader<'_>, value: Option<&SecretText>) {
    if value.is_some_and(|value| !is_visible_ascii(value.expose())) {
        reader.report_fault(
            "value",
            FieldRule::must_be("ascii", "of visible ASCII characters"),
        );
    }
}

fn is_visible_ascii(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// Reads a secret. The caller may omit a secret that is already stored.
fn read_secret(reader: &mut Reader<'_>, name: &'static str) -> Option<SecretText> {
    reader
        .required_if(false, name)
        .password(1, SECRET_CHARS_MAX)
        .map(SecretText::from)
}

fn read_format(reader: &mut Reader<'_>, kind: Option<DataFormat>) -> Option<Format> {
    let is_action = |text: &str| {
        text.len() <= LONG_TEXT_CHARS_MAX
            && text
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b'"')
    };
    let expected = "of visible ASCII characters without quotation marks";
    let action_rule = FieldRule::must_be("action", expected);
    let action = reader
        .optional("action")
        .fitting_text(action_rule, is_action);
    let expected = "an absolute URI of visible ASCII characters without quotation marks";
    let uri_rule = FieldRule::must_be("uri", expected);
    // The namespace becomes part of the default SOAP action, so it may have only the characters of an action.
    let namespace = reader
        .optional("namespace")
        .fitting_text(uri_rule, |text| is_action(text) && Url::parse(text).is_ok());
    let expected =
        "the name of an XML element (soap), or of a method that does not begin with rpc. (jsonrpc)";
    let method_rule = FieldRule::must_be("method", expected);
    let method = reader.optional("method").fitting_text(method_rule, |text| {
        text.len() <= TEXT_CHARS_MAX && is_valid_method(kind, text)
    });
    let mutation = reader.optional("mutation").long_text(0, MUTATION_CHARS_MAX);
    if let Some(kind) = kind {
        refuse_other_fields(
            reader,
            &["action", "namespace", "method", "mutation"],
            format_settings(kind),
        );
    }
    if mutation
        .as_ref()
        .is_some_and(|text| !is_graphql_mutation(text))
    {
        reader.report_fault(
            "mutation",
            FieldRule::must_be("mutation", "a mutation document with a variable $event"),
        );
    }
    Some(match kind? {
        DataFormat::Rest => Format::Rest,
        DataFormat::Soap => {
            let namespace = namespace.unwrap_or_else(|| NAMESPACE_DEFAULT.to_owned());
            let method = method.unwrap_or_else(|| SOAP_METHOD_DEFAULT.to_owned());
            let action = action.unwrap_or_else(|| default_action(&namespace, &method));
            Format::Soap {
                action,
                namespace,
                method,
            }
        }
        DataFormat::GraphQl => Format::GraphQl {
            mutation: mutation.unwrap_or_else(|| MUTATION_DEFAULT.to_owned()),
        },
        DataFormat::OData => Format::OData,
        DataFormat::JsonRpc => Format::JsonRpc {
            method: method.unwrap_or_else(|| JSONRPC_METHOD_DEFAULT.to_owned()),
        },
    })
}

fn is_valid_method(kind: Option<DataFormat>, name: &str) -> bool {
    match kind {
        Some(DataFormat::Soap) => is_method_name(name),
        _ => !name.starts_with("rpc.") && !name.chars().any(char::is_control),
    }
}

fn is_graphql_mutation(text: &str) -> bool {
    let code = text.trim_start();
    let after_keyword = code.strip_prefix("mutation");
    after_keyword.is_some_and(|after_keyword| {
        after_keyword.starts_with(|letter: char| letter.is_whitespace() || letter == '(')
    }) && code.contains("$event")
        && code.contains('{')
}

/// Returns the settings of a data format for a caller that sends no `format` object.
fn default_format(kind: DataFormat) -> Format {
    match kind {
        DataFormat::Rest => Format::Rest,
        DataFormat::OData => Format::OData,
        DataFormat::GraphQl => Format::GraphQl {
            mutation: MUTATION_DEFAULT.to_owned(),
        },
        DataFormat::JsonRpc => Format::JsonRpc {
            method: JSONRPC_METHOD_DEFAULT.to_owned(),
        },
        DataFormat::Soap => Format::Soap {
            action: default_action(NAMESPACE_DEFAULT, SOAP_METHOD_DEFAULT),
            namespace: NAMESPACE_DEFAULT.to_owned(),
            method: SOAP_METHOD_DEFAULT.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::http::forms::testing::{check, read as read_with, with_member};

    fn form(reader: &mut Reader<'_>) -> Option<Integration> {
        let erp_systems = ["sap".to_owned(), "custom".to_owned()];
        read(reader, &AddressPolicy::default(), &erp_systems)
    }

    fn check_auth(auth_type: &str, auth: &Value, cases: &[(&str, Option<Value>, &str)]) {
        check(
            &json!({ "auth_type": auth_type, "data_format": "rest", "auth": auth }),
            cases,
            form,
        );
    }

    #[test]
    fn the_fields_of_every_integration_keep_their_rules() {
        let cases = [
            ("/auth_type", None, "auth_type: required"),
            ("/auth_type", Some(json!("kerberos")), "auth_type: one_of"),
            ("/auth_type", Some(json!("NONE")), ""),
            ("/auth_type", Some(json!("basic")), "auth: required"),
            ("/data_format", None, "data_format: required"),
            ("/data_format", Some(json!("xml")), "data_format: one_of"),
            ("/erp_system", Some(json!("SAP")), "erp_system: one_of"),
            ("/erp_system", None, ""),
            (
                "/auth",
                Some(json!({ "password": "x" })),
                "auth.password: prohibited",
            ),
            ("/auth", Some(json!({})), ""),
            ("/auth", Some(json!([])), "auth: type"),
            ("/reason", Some(json!("x".repeat(1_001))), "reason: max"),
        ];
        check(
            &json!({ "erp_system": "sap", "auth_type": "none", "data_format": "rest" }),
            &cases,
            form,
        );
    }

    #[test]
    fn each_type_of_authentication_has_its_fields() {
        let long = json!("x".repeat(4_097));
        check_auth(
            "basic",
            &json!({ "username": "ada", "password": " p:w " }),
            &[
                ("/auth/username", None, "auth.username: required"),
                (
                    "/auth/username",
                    Some(json!("a:b")),
                    "auth.username: format",
                ),
                ("/auth/header", Some(json!("x")), "auth.header: prohibited"),
                ("/auth/password", None, ""),
                ("/auth/password", Some(long.clone()), "auth.password: max"),
                (
                    "/auth/password",
                    Some(json!("a\nb")),
                    "auth.password: control_characters",
                ),
                ("/auth/password", Some(json!(7)), "auth.password: type"),
                (
                    "/auth/domain",
                    Some(json!("CORP")),
                    "auth.domain: prohibited",
                ),
                (
                    "/auth/token_url",
                    Some(json!("https://a.example/")),
                    "auth.token_url: prohibited",
                ),
            ],
        );
        check_auth(
            "ntlm",
            &json!({ "username": "ada", "password": "p", "domain": "CORP" }),
            &[
                ("/auth/domain", None, ""),
                ("/auth/username", None, "auth.username: required"),
                ("/auth/value", Some(json!("x")), "auth.value: prohibited"),
            ],
        );
        check_auth(
            "api_key",
            &json!({ "header": "X-Erp-Key", "value": "k" }),
            &[
                ("/auth/header", None, ""),
                ("/auth/header", Some(json!("Host")), "auth.header: header"),
                (
                    "/auth/header",
                    Some(json!("webhook-id")),
                    "auth.header: header",
                ),
                (
                    "/auth/header",
                    Some(json!("content-type")),
                    "auth.header: header",
                ),
                ("/auth/header", Some(json!("a b")), "auth.header: header"),
                ("/auth/value", Some(json!("schlüssel")), "auth.value: ascii"),
                ("/auth/value", Some(long), "auth.value: max"),
                (
                    "/auth/username",
                    Some(json!("x")),
                    "auth.username: prohibited",
                ),
            ],
        );
    }

    #[test]
    fn tokens_have_an_endpoint_that_may_be_called() {
        let url = "https://login.example.com/token";
        let client =
            json!({ "token_url": url, "client_id": "c", "client_secret": "s", "scope": "a b" });
        let cases = [
            ("/auth/token_url", None, "auth.token_url: required"),
            (
                "/auth/token_url",
                Some(json!("https://10.0.0.1/token")),
                "auth.token_url: url_address",
            ),
            (
                "/auth/token_url",
                Some(json!("http://login.example.com/")),
                "auth.token_url: url_scheme",
            ),
            (
                "/auth/token_url",
                Some(json!("https://a:b@login.example.com/")),
                "auth.token_url: url_user",
            ),
            ("/auth/client_id", None, "auth.client_id: required"),
            ("/auth/client_secret", None, ""),
            ("/auth/scope", None, ""),
            ("/auth/client_authentication", Some(json!("body")), ""),
            (
                "/auth/client_authentication",
                Some(json!("jwt")),
                "auth.client_authentication: one_of",
            ),
            (
                "/auth/password",
                Some(json!("p")),
                "auth.password: prohibited",
            ),
        ];
        check_auth("client_credentials", &client, &cases);
        check_auth(
            "client_credentials",
            &client,
            &[(
                "/auth/refresh_token",
                Some(json!("r")),
                "auth.refresh_token: prohibited",
            )],
        );
        check_auth("oauth2", &client, &cases);
        check_auth(
            "oauth2",
            &client,
            &[("/auth/refresh_token", Some(json!("r")), "")],
        );
    }

    #[test]
    fn an_origin_is_a_scheme_host_and_port_alone() {
        let body =
            json!({ "auth_type": "basic", "data_format": "rest", "auth": { "username": "a" } });
        let cases = [
            ("/origin", Some(json!("https://erp.example.com")), ""),
            ("/origin", Some(json!("https://erp.example.com:8443/")), ""),
            ("/origin", Some(json!(null)), ""),
            ("/origin", Some(json!("erp.example.com")), "origin: url"),
            (
                "/origin",
                Some(json!("https://erp.example.com/hook")),
                "origin: origin",
            ),
            (
                "/origin",
                Some(json!("https://erp.example.com/?a=b")),
                "origin: origin",
            ),
            (
                "/origin",
                Some(json!("https://erp.example.com/#a")),
                "origin: origin",
            ),
            (
                "/origin",
                Some(json!("https://ada:p@erp.example.com")),
                "origin: url_user",
            ),
            (
                "/origin",
                Some(json!("ftp://erp.example.com")),
                "origin: url_scheme",
            ),
            (
                "/origin",
                Some(json!("https://169.254.169.254")),
                "origin: url_address",
            ),
            (
                "/origin",
                Some(json!(["https://erp.example.com"])),
                "origin: type",
            ),
            (
                "/origin",
                Some(json!("https://erp.example.com?a")),
                "origin: origin",
            ),
            (
                "/origin",
                Some(json!("https://erp.example.com#a")),
                "origin: origin",
            ),
            (
                "/origin",
                Some(json!("https://a@erp.example.com")),
                "origin: url_user",
            ),
            (
                "/origin",
                Some(json!("http://erp.example.com")),
                "origin: url_scheme",
            ),
            (
                "/origin",
                Some(json!("https://10.0.0.1")),
                "origin: url_address",
            ),
            ("/origin", Some(json!(7)), "origin: type"),
        ];
        check(&body, &cases, form);
        let without_auth = json!({ "auth_type": "none", "data_format": "rest" });
        check(
            &without_auth,
            &[(
                "/origin",
                Some(json!("https://erp.example.com")),
                "origin: prohibited",
            )],
            form,
        );
        let with_default_port =
            with_member(&body, "/origin", Some(json!("https://ERP.example.com:443")));
        let origin = read_with(with_default_port, form).unwrap().value.origin;
        assert_eq!(origin, Origin::from_url("https://erp.example.com"));
    }

    #[test]
    fn a_network_opens_the_urls_of_the_same_body_and_names_its_port_in_production() {
        let networks = |list: Value| json!({ "auth_type": "none", "data_format": "rest", "allowed_networks": list });
        let check_networks = |list: Value, rule: &'static str| {
            check(
                &networks(json!([])),
                &[("/allowed_networks", Some(list), rule)],
                form,
            );
        };
        check_networks(json!(null), "");
        check_networks(
            json!(["10.1.2.0/24:8443", "[fd00::/8]:8443", "10.0.0.0/8"]),
            "",
        );
        check_networks(
            json!(["10.1.2.0/24", "erp.example:443"]),
            "allowed_networks.1: network",
        );
        check_networks(
            json!(["169.254.169.254/32:80"]),
            "allowed_networks.0: network",
        );
        check_networks(json!(["0.0.0.0/0"]), "allowed_networks.0: network");
        check_networks(json!(["169.254.0.0/16"]), "allowed_networks.0: network");
        check_networks(json!(["fe80::/10"]), "allowed_networks.0: network");
        check_networks(
            json!(["[fd00:ec2::254/128]:80"]),
            "allowed_networks.0: network",
        );
        check_networks(json!(vec!["10.0.0.0/8:1"; 21]), "allowed_networks: max");
        check_networks(json!("10.0.0.0/8"), "allowed_networks: type");
        check_networks(json!([10]), "allowed_networks.0: type");
        let production = AddressPolicy::default().with_required_ports(true);
        let in_production = |reader: &mut Reader<'_>| read(reader, &production, &[]);
        let cases = [
            (
                "/allowed_networks",
                Some(json!(["10.1.2.0/24"])),
                "allowed_networks.0: network",
            ),
            ("/allowed_networks", Some(json!(["10.1.2.0/24:8443"])), ""),
        ];
        check(&networks(json!([])), &cases, in_production);
        let mut body = networks(json!(["10.1.2.0/24:8443"]));
        body["auth_type"] = json!("client_credentials");
        body["auth"] = json!({ "token_url": "http://10.1.2.3:8443/token", "client_id": "c" });
        body["origin"] = json!("http://10.1.2.4:8443");
        let cases = [
            ("/reason", None, ""),
            (
                "/origin",
                Some(json!("http://10.1.2.4:8444")),
                "origin: url_address",
            ),
            (
                "/auth/token_url",
                Some(json!("http://10.1.2.4/token")),
                "auth.token_url: url_address",
            ),
        ];
        check(&body, &cases, in_production);
    }

    #[test]
    fn each_format_has_its_settings() {
        for (kind, cases) in [
            (
                "rest",
                vec![("/format/method", json!("x"), "format.method: prohibited")],
            ),
            (
                "odata",
                vec![(
                    "/format/mutation",
                    json!(MUTATION_DEFAULT),
                    "format.mutation: prohibited",
                )],
            ),
            (
                "soap",
                vec![
                    ("/format/action", json!("urn:x"), ""),
                    ("/format/action", json!("a\"b"), "format.action: action"),
                    ("/format/namespace", json!("http://erp.example/ws"), ""),
                    ("/format/namespace", json!("erp"), "format.namespace: uri"),
                    (
                        "/format/namespace",
                        json!("urn:erp\nx"),
                        "format.namespace: uri",
                    ),
                    (
                        "/format/namespace",
                        json!("urn:a\"b"),
                        "format.namespace: uri",
                    ),
                    ("/format/method", json!("PostEvent"), ""),
                    ("/format/method", json!("1st"), "format.method: method"),
                    ("/format/method", json!("a:b"), "format.method: method"),
                    (
                        "/format/mutation",
                        json!(MUTATION_DEFAULT),
                        "format.mutation: prohibited",
                    ),
                ],
            ),
            (
                "graphql",
                vec![
                    (
                        "/format/mutation",
                        json!("mutation ($event: In!) { take(event: $event) { ok } }"),
                        "",
                    ),
                    (
                        "/format/mutation",
                        json!("query { a(event: $event) }"),
                        "format.mutation: mutation",
                    ),
                    (
                        "/format/mutation",
                        json!("mutation { take }"),
                        "format.mutation: mutation",
                    ),
                    ("/format/method", json!("x"), "format.method: prohibited"),
                ],
            ),
            (
                "jsonrpc",
                vec![
                    ("/format/method", json!("erp.notify"), ""),
                    (
                        "/format/method",
                        json!("rpc.notify"),
                        "format.method: method",
                    ),
                    ("/format/action", json!("x"), "format.action: prohibited"),
                ],
            ),
        ] {
            let body = json!({ "auth_type": "none", "data_format": kind, "format": {} });
            let cases: Vec<_> = cases
                .into_iter()
                .map(|(pointer, value, rule)| (pointer, Some(value), rule))
                .collect();
            check(&body, &cases, form);
        }
    }

    #[test]
    fn settings_that_are_not_sent_have_their_defaults() {
        for kind in DataFormat::ALL {
            let bare = json!({ "auth_type": "none", "data_format": kind });
            let empty = json!({ "auth_type": "none", "data_format": kind, "format": {} });
            let read = |body| read_with(body, form).unwrap().value.format;
            assert_eq!(read(bare.clone()), read(empty));
            assert_eq!(read(bare).kind(), *kind);
        }
        let body = json!({ "auth_type": "none", "data_format": "soap", "format": { "namespace": "http://a.example/" } });
        let expected = Format::Soap {
            action: "http://a.example/Notify".into(),
            namespace: "http://a.example/".into(),
            method: "Notify".into(),
        };
        assert_eq!(read_with(body, form).unwrap().value.format, expected);
        let body =
            json!({ "auth_type": "api_key", "data_format": "rest", "auth": { "value": "k" } });
        let Auth::ApiKey { header, value } = read_with(body, form).unwrap().value.auth else {
            panic!()
        };
        assert_eq!(
            (header.as_str(), value.unwrap().expose()),
            ("x-api-key", "k")
        );
    }
}
