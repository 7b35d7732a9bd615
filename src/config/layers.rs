//! Defaults, file, environment: each layer is checked by itself, key by key, and laid over the one before.
//!
//! A variable's value for a text setting is taken as it is, so that a key of digits stays text; for any other
//! setting it is read as TOML.

use std::path::Path;

use config::{Config, File, FileFormat};
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::DEFAULTS;
use super::fault::{ConfigFault, Fault, Origin};
use super::limits;

/// What a variable begins with that is a setting.
const PREFIX: &str = "EINVOICE__";
const SEPARATOR: &str = "__";

/// All layers as one.
pub(super) fn merged<T: DeserializeOwned>(
    file: Option<&Path>,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<T, ConfigFault> {
    let mut checked = Checked::new()?;
    // As text, because what the crate makes of a table by itself lacks its empty lists.
    let source = |text: &str| File::from_str(text, FileFormat::Toml);
    let mut config = Config::builder().add_source(source(DEFAULTS));
    if let Some(path) = file {
        config = config.add_source(source(&checked.file(path).to_string()));
    }
    config = config.add_source(source(&checked.environment(environment).to_string()));
    ConfigFault::unless_empty(checked.faults)?;
    Ok(config.build()?.try_deserialize()?)
}

/// The faults of the layers so far, beside what they are held against.
struct Checked {
    defaults: Table,
    faults: Vec<Fault>,
}

impl Checked {
    fn new() -> Result<Self, ConfigFault> {
        let defaults = parse(DEFAULTS, &Origin::Defaults).map_err(|fault| ConfigFault(vec![fault]))?;
        Ok(Self { defaults, faults: Vec::new() })
    }

    fn file(&mut self, path: &Path) -> Table {
        let origin = Origin::File(path.to_owned());
        let unreadable =
            |error: std::io::Error| Fault::Unreadable { file: path.to_owned(), reason: error.to_string() };
        let layer = std::fs::read_to_string(path).map_err(unreadable).and_then(|text| parse(&text, &origin));
        match layer {
            Ok(layer) => self.layer(layer, &origin),
            Err(fault) => {
                self.faults.push(fault);
                Table::new()
            }
        }
    }

    fn environment(&mut self, variables: impl Iterator<Item = (String, String)>) -> Table {
        let mut all = Table::new();
        for (name, text) in variables {
            let Some(key) = name.strip_prefix(PREFIX) else { continue };
            let key = key.to_lowercase().replace(SEPARATOR, ".");
            let value = variable(&key, text);
            let layer = match key.split_once('.') {
                Some((section, rest)) => table(section, Value::Table(table(rest, value))),
                None => table(&key, value),
            };
            overlay(&mut all, self.layer(layer, &Origin::Variable(name)));
        }
        all
    }

    /// What of this layer is a setting with a value it may have.
    fn layer(&mut self, layer: Table, origin: &Origin) -> Table {
        let mut admitted = Table::new();
        for (name, value) in layer {
            match (self.defaults.get(&name).cloned(), value) {
                (Some(Value::Table(known)), Value::Table(section)) => {
                    let section = self.section(&name, &known, section, origin);
                    admitted.insert(name, Value::Table(section));
                }
                (Some(Value::Table(known)), _) => {
                    let allowed = format!("a section; it has {}", listed(&known));
                    self.refuse(name, origin, allowed, String::new());
                }
                (Some(_), Value::Table(inner)) => {
                    let inner = inner.into_iter().next().map(|(inner, _)| inner).unwrap_or_default();
                    self.unknown(format!("{name}.{inner}"), origin);
                }
                (Some(_), value) if self.admits(&name, &value, origin) => {
                    admitted.insert(name, value);
                }
                (Some(_), _) => {}
                (None, Value::Table(section)) if !section.is_empty() => {
                    section.keys().for_each(|key| self.unknown(format!("{name}.{key}"), origin));
                }
                (None, _) => self.unknown(name, origin),
            }
        }
        admitted
    }

    fn section(&mut self, name: &str, known: &Table, section: Table, origin: &Origin) -> Table {
        let mut admitted = Table::new();
        for (key, value) in section {
            let full = format!("{name}.{key}");
            if !known.contains_key(&key) {
                let known = format!("[{name}] has {}", listed(known));
                self.faults.push(Fault::Unknown { key: full, origin: origin.clone(), known });
            } else if self.admits(&full, &value, origin) {
                admitted.insert(key, value);
            }
        }
        admitted
    }

    fn admits(&mut self, key: &str, value: &Value, origin: &Origin) -> bool {
        let Some(allowed) = limits::of(key).filter(|allowed| !allowed.admits(value)) else { return true };
        let found = if limits::is_secret(key) { String::new() } else { format!(", not {value}") };
        self.refuse(key.to_owned(), origin, allowed.sentence(), found);
        false
    }

    fn refuse(&mut self, key: String, origin: &Origin, allowed: String, found: String) {
        self.faults.push(Fault::NotAllowed { key, origin: origin.clone(), allowed, found });
    }

    /// A key without a section of its own among the settings.
    fn unknown(&mut self, key: String, origin: &Origin) {
        let (sections, single): (Vec<_>, Vec<_>) =
            self.defaults.iter().partition(|(_, value)| value.is_table());
        let names = |part: Vec<(&String, &Value)>| {
            part.into_iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
        };
        let known = format!("there are {} and the sections {}", names(single), names(sections));
        self.faults.push(Fault::Unknown { key, origin: origin.clone(), known });
    }
}

/// The value of a variable. What is no TOML stays text, which its setting then refuses.
fn variable(key: &str, text: String) -> Value {
    if limits::of(key).is_some_and(limits::Allowed::is_text) {
        return Value::String(text);
    }
    text.trim().parse().unwrap_or(Value::String(text))
}

/// The reason of a fault is the parser's without the line it quotes, which may hold a secret.
fn parse(text: &str, origin: &Origin) -> Result<Table, Fault> {
    text.parse().map_err(|error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        Fault::NotToml { origin: origin.clone(), line, reason: error.message().to_owned() }
    })
}

fn table(key: &str, value: Value) -> Table {
    Table::from_iter([(key.to_owned(), value)])
}

fn overlay(below: &mut Table, above: Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => overlay(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

fn listed(section: &Table) -> String {
    section.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}
