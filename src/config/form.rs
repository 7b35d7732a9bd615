//! Reads and writes values of the settings file. Empty text means that a value is absent; a secret is masked as `***`.

use std::fmt::Display;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use address_policy::{AllowedNetwork, NetworkFault};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use jiff::tz::Offset;
use secrecy::{ExposeSecret, SecretString};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::Url;

use super::Environment;

const MASK: &str = "***";
const LOOPBACK_IN_DEVELOPMENT: &str = "loopback-in-development";
const LOOPBACK: [IpNet; 2] = [
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8)),
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128)),
];
/// No time zone has an offset from UTC of more than 14 hours.
const OFFSET_HOURS_MAX: i32 = 14;

/// One entry of the setting `webhooks.allowed_networks`, as it is written there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum NetworkEntry {
    /// Allows loopback addresses in development, and nothing in production.
    LoopbackInDevelopment,
    Network(AllowedNetwork),
}

impl NetworkEntry {
    pub(super) fn allowed_networks(self, environment: Environment) -> Vec<AllowedNetwork> {
        match (self, environment) {
            (Self::Network(network), _) => vec![network],
            (Self::LoopbackInDevelopment, Environment::Development) => LOOPBACK
                .map(|network| AllowedNetwork {
                    network,
                    port: None,
                })
                .into(),
            (Self::LoopbackInDevelopment, Environment::Production) => Vec::new(),
        }
    }
}

impl FromStr for NetworkEntry {
    type Err = NetworkFault;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            LOOPBACK_IN_DEVELOPMENT => Ok(Self::LoopbackInDevelopment),
            network => network.parse().map(Self::Network),
        }
    }
}

impl TryFrom<String> for NetworkEntry {
    type Error = NetworkFault;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<NetworkEntry> for String {
    fn from(entry: NetworkEntry) -> Self {
        match entry {
            NetworkEntry::LoopbackInDevelopment => LOOPBACK_IN_DEVELOPMENT.to_owned(),
            NetworkEntry::Network(network) => network.to_string(),
        }
    }
}

pub(super) fn read_optional<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    let text = String::deserialize(from)?;
    (!text.is_empty())
        .then(|| text.parse().map_err(D::Error::custom))
        .transpose()
}

#[expect(clippy::ref_option, reason = "serde passes the field as it is")]
pub(super) fn write_url<S: Serializer>(url: &Option<Url>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(url.as_ref().map(Url::as_str).unwrap_or_default())
}

#[expect(clippy::ref_option, reason = "serde passes the field as it is")]
pub(super) fn write_name<S: Serializer>(name: &Option<String>, to: S) -> Result<S::Ok, S::Error> {
    name.as_deref().unwrap_or_default().serialize(to)
}

#[expect(clippy::ref_option, reason = "serde passes the field as it is")]
pub(super) fn write_path<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    path.clone().unwrap_or_default().serialize(to)
}

pub(super) fn read_networks<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<IpNet>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    texts
        .iter()
        .map(|text| text.parse().map_err(D::Error::custom))
        .collect()
}

pub(super) fn write_networks<S: Serializer>(networks: &[IpNet], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(networks.iter().map(ToString::to_string))
}

#[expect(clippy::ref_option, reason = "serde passes the field as it is")]
pub(super) fn write_address<S: Serializer>(
    address: &Option<SocketAddr>,
    to: S,
) -> Result<S::Ok, S::Error> {
    to.serialize_str(
        &address
            .map(|address| address.to_string())
            .unwrap_or_default(),
    )
}

pub(super) fn read_secret<'de, D: Deserializer<'de>>(from: D) -> Result<SecretString, D::Error> {
    String::deserialize(from).map(SecretString::from)
}

pub(super) fn mask_secret<S: Serializer>(secret: &SecretString, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(if secret.expose_secret().is_empty() {
        ""
    } else {
        MASK
    })
}

pub(super) fn read_secrets<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Vec<SecretString>, D::Error> {
    Ok(Vec::<String>::deserialize(from)?
        .into_iter()
        .map(SecretString::from)
        .collect())
}

pub(super) fn mask_secrets<S: Serializer>(
    secrets: &[SecretString],
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_seq(secrets.iter().map(|_| MASK))
}

/// Writes a URL with its password masked. The password may follow the user's name or be a query parameter.
pub(super) fn mask_url<S: Serializer>(url: &SecretString, to: S) -> Result<S::Ok, S::Error> {
    let text = url.expose_secret();
    let masked = match Url::parse(text) {
        Ok(url) => mask_password(url),
        Err(_) if text.is_empty() => String::new(),
        Err(_) => MASK.to_owned(),
    };
    to.serialize_str(&masked)
}

fn mask_password(mut url: Url) -> String {
    if url.password().is_some() && url.set_password(Some(MASK)).is_err() {
        return MASK.to_owned();
    }
    if url.query().is_some() {
        let pairs: Vec<_> = url
            .query_pairs()
            .map(|(name, value)| {
                let masked = if name.contains("password") {
                    MASK.to_owned()
                } else {
                    value.into_owned()
                };
                (name.into_owned(), masked)
            })
            .collect();
        url.query_pairs_mut().clear().extend_pairs(pairs);
    }
    url.into()
}

pub(super) fn read_offset<'de, D: Deserializer<'de>>(from: D) -> Result<Offset, D::Error> {
    let text = String::deserialize(from)?;
    parse_offset(&text).ok_or_else(|| D::Error::custom("no offset from UTC"))
}

/// Parses an offset from UTC, such as `+01:00`, `-03:30` or `Z`.
pub(super) fn parse_offset(text: &str) -> Option<Offset> {
    if text == "Z" {
        return Some(Offset::UTC);
    }
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+')?),
    };
    let (hours, minutes) = digits.split_once(':')?;
    let minutes = parse_two_digits(hours, OFFSET_HOURS_MAX)? * 60 + parse_two_digits(minutes, 59)?;
    Offset::from_seconds(sign * minutes * 60).ok()
}

fn parse_two_digits(text: &str, max: i32) -> Option<i32> {
    let is_two_digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse::<i32>()
        .ok()
        .filter(|number| is_two_digits && *number <= max)
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes the field as it is"
)]
pub(super) fn write_offset<S: Serializer>(offset: &Offset, to: S) -> Result<S::Ok, S::Error> {
    let minutes = offset.seconds() / 60;
    let sign = if minutes < 0 { '-' } else { '+' };
    to.collect_str(&format_args!(
        "{sign}{:02}:{:02}",
        minutes.abs() / 60,
        minutes.abs() % 60
    ))
}
