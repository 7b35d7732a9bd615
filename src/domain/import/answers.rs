//! The answers to the questions of a preview. They are added to the import profile as it is stored when the answers
//! arrive.

use std::collections::BTreeMap;

use crate::domain::import::profile::ImportProfile;

/// Values for fields that a file lacks: for all customers, and for single ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportAnswers {
    pub defaults: BTreeMap<String, String>,
    pub customers: Vec<CustomerAnswers>,
}

/// The values for one customer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomerAnswers {
    /// The key of the customer's entry in a profile: its number, or its name.
    pub key: String,
    pub name: String,
    pub values: BTreeMap<String, String>,
}

impl ImportAnswers {
    /// Returns the number of all values together: those for all customers and those for single ones.
    pub fn value_count(&self) -> usize {
        let values = self.customers.iter().map(|one| one.values.len());
        self.defaults.len() + values.sum::<usize>()
    }

    /// Adds the answers to a profile, and keeps everything else in it. A new entry for a customer's number starts with
    /// the values of the entry for the customer's name, which is not used any more once there is one for the number.
    pub fn add_to(&self, profile: &mut ImportProfile) {
        profile.defaults.extend(self.defaults.clone());
        for one in &self.customers {
            let known = profile.customers.get(&one.key);
            let known = known.or_else(|| profile.customers.get(&one.name));
            let mut values = known.cloned().unwrap_or_default();
            values.extend(one.values.clone());
            profile.customers.insert(one.key.clone(), values);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn an_answer_is_added_to_the_entry_that_the_import_reads() {
        for (key, name, expected) in [
            (
                "C1",
                "Obi",
                json!({
                    "C1": { "tin": "T-1", "email": "a@b.example" }, "Obi": { "tin": "T-1" }, "C2": { "tin": "T-2" },
                }),
            ),
            (
                "Obi",
                "Obi",
                json!({ "Obi": { "tin": "T-1", "email": "a@b.example" }, "C2": { "tin": "T-2" } }),
            ),
            (
                "C2",
                "Obi",
                json!({ "Obi": { "tin": "T-1" }, "C2": { "tin": "T-2", "email": "a@b.example" } }),
            ),
        ] {
            let before = json!({
                "defaults": { "currency": "NGN" }, "customers": { "Obi": { "tin": "T-1" }, "C2": { "tin": "T-2" } },
                "columns": {}, "units": { "XPP": "EA" },
            });
            let mut profile: ImportProfile = serde_json::from_value(before).unwrap();
            let email = || BTreeMap::from([("email".to_owned(), "a@b.example".to_owned())]);
            let answers = ImportAnswers {
                defaults: email(),
                customers: vec![CustomerAnswers {
                    key: key.to_owned(),
                    name: name.to_owned(),
                    values: email(),
                }],
            };
            answers.add_to(&mut profile);
            let after: Value = json!({
                "defaults": { "currency": "NGN", "email": "a@b.example" }, "customers": expected, "columns": {},
                "units": { "XPP": "EA" },
            });
            assert_eq!((json!(profile), answers.value_count()), (after, 2), "{key}");
        }
    }
}
