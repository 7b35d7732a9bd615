//! Faults of request fields. A form reports all of them at once; each has the path of the field in the
//! caller's names, a stable rule id and a message.

use std::collections::BTreeMap;

/// One rule broken by one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Dot path from the root of the body, such as `invoice_lines.0.quantity`.
    pub path: String,
    /// Stable id of the rule, such as `required` or `exists`.
    pub rule: &'static str,
    /// A message that tells the caller what to change.
    pub message: String,
}

impl Fault {
    pub fn new(path: impl Into<String>, rule: &'static str, message: impl Into<String>) -> Self {
        Self { path: path.into(), rule, message: message.into() }
    }
}

/// Converts a dot path to a JSON Pointer (RFC 6901). Nothing else builds one.
pub fn json_pointer(path: &str) -> String {
    format!("/{}", path.replace('~', "~0").replace('/', "~1").replace('.', "/"))
}

/// The maximum number of kept faults of one request. Further faults are counted, so that a small body cannot
/// cause a large response.
pub const FAULTS_MAX: usize = 1_000;

/// The faults found in one request, in the order of the fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults {
    kept: Vec<Fault>,
    /// Faults beyond the maximum, counted only.
    rest: u32,
    /// The maximum number of kept faults.
    max: u32,
}

impl Default for Faults {
    fn default() -> Self {
        Self::up_to(FAULTS_MAX)
    }
}

impl Faults {
    /// Keeps up to `max` faults and counts the rest.
    pub fn up_to(max: usize) -> Self {
        Self { kept: Vec::new(), rest: 0, max: u32::try_from(max).unwrap_or(u32::MAX) }
    }

    pub fn push(&mut self, fault: Fault) {
        if self.is_full() {
            self.rest += 1;
        } else {
            self.kept.push(fault);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// True if further faults are only counted, so the reader of a list can stop.
    pub fn is_full(&self) -> bool {
        self.kept.len() >= self.max as usize
    }

    /// Iterates over the kept faults.
    pub fn iter(&self) -> impl Iterator<Item = &Fault> {
        self.kept.iter()
    }

    /// Returns the message of the first fault and the number of others. Parts that were not read are not
    /// counted.
    pub fn summary(&self) -> String {
        let first = self.kept.first().map_or("The request is invalid.", |fault| fault.message.as_str());
        match (self.kept.len() + self.rest as usize).saturating_sub(1) {
            0 => first.to_owned(),
            1 => format!("{first} (and 1 more error)"),
            more => format!("{first} (and {more} more errors)"),
        }
    }

    /// Returns the messages by path, as the body of a 422 shows them.
    pub fn by_path(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut paths: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for fault in &self.kept {
            paths.entry(&fault.path).or_default().push(&fault.message);
        }
        paths
    }
}

impl From<Fault> for Faults {
    fn from(fault: Fault) -> Self {
        Self { kept: vec![fault], ..Self::default() }
    }
}

impl FromIterator<Fault> for Faults {
    fn from_iter<I: IntoIterator<Item = Fault>>(faults: I) -> Self {
        let mut all = Self::default();
        for fault in faults {
            all.push(fault);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(count: usize) -> Faults {
        (0..count).map(|n| Fault::new(format!("f{n}"), "required", format!("Fault {n}."))).collect()
    }

    #[test]
    fn a_pointer_escapes_its_special_characters() {
        assert_eq!(json_pointer("invoice_lines.0.quantity"), "/invoice_lines/0/quantity");
        let body = serde_json::json!({ "a/b": { "~": { "c~1": 7 } } });
        assert_eq!(json_pointer("a/b.~.c~1"), "/a~1b/~0/c~01");
        assert_eq!(body.pointer(&json_pointer("a/b.~.c~1")), Some(&serde_json::json!(7)));
    }

    #[test]
    fn the_summary_counts_the_faults_after_the_first() {
        assert_eq!(faults(1).summary(), "Fault 0.");
        assert_eq!(faults(2).summary(), "Fault 0. (and 1 more error)");
        assert_eq!(faults(4).summary(), "Fault 0. (and 3 more errors)");
    }

    #[test]
    fn a_thousand_faults_are_kept_and_the_rest_is_counted() {
        let many = faults(FAULTS_MAX + 7);
        assert_eq!((many.iter().count(), many.is_full()), (FAULTS_MAX, true));
        assert_eq!(many.summary(), "Fault 0. (and 1006 more errors)");
        assert!(!faults(FAULTS_MAX - 1).is_full());
    }

    #[test]
    fn several_faults_of_one_field_share_its_path() {
        let faults: Faults =
            [Fault::new("a", "max", "Too long."), Fault::new("a", "format", "Odd.")].into_iter().collect();
        assert_eq!(faults.by_path()["a"], ["Too long.", "Odd."]);
    }
}
