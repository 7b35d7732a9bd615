//! Merges the settings. The settings file overrides the defaults, and the environment overrides both.

use std::path::Path;

use config::{Config, File, FileFormat, FileSourceString};
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::allowed::AllowedValues;
use super::fault::{ConfigFault, SettingFault, SettingSource};
use super::limits;

/// The documented defaults of all settings, in TOML.
pub(super) const DEFAULTS: &str = include_str!("../../config.toml");
/// Environment variables with this prefix are settings.
const VARIABLE_PREFIX: &str = "EINVOICE__";
const SEPARATOR: &str = "__";

/// Merges the defaults, the file and the environment. The error lists the faults of the file and the environment.
pub(super) fn merge<T: DeserializeOwned>(
    file: Option<&Path>,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<T, ConfigFault> {
    let mut checks = LayerChecks::new()?;
    let mut config = Config::builder().add_source(toml_source(DEFAULTS));
    if let Some(path) = file {
        config = config.add_source(toml_source(&checks.read_file(path).to_string()));
    }
    let environment = checks.read_environment(environment).to_string();
    config = config.add_source(toml_source(&environment));
    ConfigFault::unless_empty(checks.faults)?;
    Ok(config.build()?.try_deserialize()?)
}

/// Returns a source for the `config` crate, from the TOML text of a layer. From a table, the crate would drop empty
/// lists.
fn toml_source(text: &str) -> File<FileSourceString, FileFormat> {
    File::from_str(text, FileFormat::Toml)
}

/// Checks the file and the environment against the defaults, which contain every known setting. Collects the faults.
struct LayerChecks {
    defaults: Table,
    faults: Vec<SettingFault>,
}

impl LayerChecks {
    fn new() -> Result<Self, ConfigFault> {
        let defaults = parse_toml(DEFAULTS, &SettingSource::Defaults)
            .map_err(|fault| ConfigFault(vec![fault]))?;
        Ok(Self {
            defaults,
            faults: Vec::new(),
        })
    }

    fn read_file(&mut self, path: &Path) -> Table {
        let origin = SettingSource::File(path.to_owned());
        let layer = std::fs::read_to_string(path)
            .map_err(|error| SettingFault::Unreadable {
                file: path.to_owned(),
                reason: error.to_string(),
            })
            .and_then(|text| parse_toml(&text, &origin));
        match layer {
            Ok(layer) => self.check_layer(layer, &origin),
            Err(fault) => {
                self.faults.push(fault);
                Table::new()
            }
        }
    }

    fn read_environment(&mut self, variables: impl Iterator<Item = (String, String)>) -> Table {
        let mut merged = Table::new();
        for (name, text) in variables {
            let Some(key) = name.strip_prefix(VARIABLE_PREFIX) else {
                continue;
            };
            let key = key.to_lowercase().replace(SEPARATOR, ".");
            let value = variable_value(&key, text);
            let layer = match key.split_once('.') {
                Some((section, rest)) => {
                    single_entry(section, Value::Table(single_entry(rest, value)))
                }
                None => single_entry(&key, value),
            };
            overlay_table(
                &mut merged,
                self.check_layer(layer, &SettingSource::Variable(name)),
            );
        }
        merged
    }

    /// Returns the settings of this layer that exist and have an allowed value. Records a fault for every other one.
    fn check_layer(&mut self, layer: Table, origin: &SettingSource) -> Table {
        let mut allowed_settings = Table::new();
        for (name, value) in layer {
            match (self.defaults.get(&name).cloned(), value) {
                (Some(Value::Table(known)), Value::Table(section)) => {
                    let section = self.check_section(&name, &known, section, origin);
                    allowed_settings.insert(name, Value::Table(section));
                }
                (Some(Value::Table(known)), _) => {
                    let allowed = format!("a section; it has {}", list_keys(&known));
                    self.refuse_value(name, origin, allowed, String::new());
                }
                (Some(_), Value::Table(inner)) => {
                    let inner = inner
                        .into_iter()
                        .next()
                        .map(|(inner, _)| inner)
                        .unwrap_or_default();
                    self.refuse_unknown(format!("{name}.{inner}"), origin);
                }
                (Some(_), value) if self.check_value(&name, &value, origin) => {
                    allowed_settings.insert(name, value);
                }
                (Some(_), _) => {}
                (None, Value::Table(section)) if !section.is_empty() => {
                    section
                        .keys()
                        .for_each(|key| self.refuse_unknown(format!("{name}.{key}"), origin));
                }
                (None, _) => self.refuse_unknown(name, origin),
            }
        }
        allowed_settings
    }

    fn check_section(
        &mut self,
        name: &str,
        known: &Table,
        section: Table,
        origin: &SettingSource,
    ) -> Table {
        let mut allowed_settings = Table::new();
        for (key, value) in section {
            let full_key = format!("{name}.{key}");
            if !known.contains_key(&key) {
                let known = format!("[{name}] has {}", list_keys(known));
                self.faults.push(SettingFault::Unknown {
                    key: full_key,
                    origin: origin.clone(),
                    known,
                });
            } else if self.check_value(&full_key, &value, origin) {
                allowed_settings.insert(key, value);
            }
        }
        allowed_settings
    }

    /// True if the setting may have this value. Records a fault otherwise.
    fn check_value(&mut self, key: &str, value: &Value, origin: &SettingSource) -> bool {
        let Some(allowed) = limits::allowed_values(key).filter(|allowed| !allowed.admits(value))
        else {
            return true;
        };
        let actual = if limits::is_secret(key) {
            String::new()
        } else {
            format!(", not {value}")
        };
        self.refuse_value(key.to_owned(), origin, allowed.describe(), actual);
        false
    }

    fn refuse_value(
        &mut self,
        key: String,
        origin: &SettingSource,
        allowed: String,
        actual: String,
    ) {
        self.faults.push(SettingFault::NotAllowed {
            key,
            origin: origin.clone(),
            allowed,
            actual,
        });
    }

    /// Records a fault for a key that is not a setting.
    fn refuse_unknown(&mut self, key: String, origin: &SettingSource) {
        let (sections, top_level): (Vec<_>, Vec<_>) = self
            .defaults
            .iter()
            .partition(|(_, value)| value.is_table());
        let known = format!(
            "there are {} and the sections {}",
            join_setting_names(&top_level),
            join_setting_names(&sections)
        );
        self.faults.push(SettingFault::Unknown {
            key,
            origin: origin.clone(),
            known,
        });
    }
}

fn join_setting_names(settings: &[(&String, &Value)]) -> String {
    let names: Vec<_> = settings.iter().map(|(name, _)| name.as_str()).collect();
    names.join(", ")
}

/// Returns the value of an environment variable: as it is if the setting is text, else parsed as TOML. Text that is not
/// valid TOML stays text, and is refused later because its type is wrong.
fn variable_value(key: &str, text: String) -> Value {
    if limits::allowed_values(key).is_some_and(AllowedValues::is_text) {
        return Value::String(text);
    }
    text.trim().parse().unwrap_or(Value::String(text))
}

/// Parses TOML. The fault has the parser's message without the quoted line, because the line may contain a secret.
fn parse_toml(text: &str, origin: &SettingSource) -> Result<Table, SettingFault> {
    text.parse().map_err(|error: toml::de::Error| {
        let before = error
            .span()
            .and_then(|span| text.get(..span.start))
            .unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        SettingFault::NotToml {
            origin: origin.clone(),
            line,
            reason: error.message().to_owned(),
        }
    })
}

fn single_entry(key: &str, value: Value) -> Table {
    Table::from_iter([(key.to_owned(), value)])
}

fn overlay_table(below: &mut Table, above: Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => overlay_table(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

fn list_keys(section: &Table) -> String {
    section
        .keys()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}
