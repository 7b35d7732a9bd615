//! Finds the violated rule and the expected value in a sentence: `must be a number` violates the rule `type` and
//! expects `a number`. In a phrase of the tables `*` stands for any text. The first phrase that matches is used.

/// The meaning of a sentence: the violated rule and the expected value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SentenceMeaning {
    pub(super) rule: &'static str,
    pub(super) expected: String,
}

/// A phrase, the id of the violated rule, and the expected value, in which `*` stands for the text at the phrase's `*`.
type PhraseRow = (&'static str, &'static str, &'static str);

const PRESENCE: &[PhraseRow] = &[
    ("is required*", "required", "a value"),
    ("is a required field*", "required", "a value"),
    ("is missing*", "required", "a value"),
    ("cannot be blank*", "required", "a value"),
    ("cannot be empty*", "required", "a value"),
    ("cannot be null*", "required", "a value"),
    ("must not be empty*", "required", "a value"),
    ("must not be blank*", "required", "a value"),
    ("must not be null*", "required", "a value"),
    ("should not be empty*", "required", "a value"),
];

const CHOICES: &[PhraseRow] = &[
    ("must be one of: *", "one_of", "one of *"),
    ("must be one of *", "one_of", "one of *"),
    ("must be any of *", "one_of", "one of *"),
    ("must be either *", "one_of", "*"),
    ("must be a known code*", "exists", "a known code"),
    ("must exist in *", "exists", "a code of *"),
    ("does not exist*", "exists", "something that exists"),
    ("is not a known *", "exists", "a known *"),
    ("is not a valid code*", "exists", "a known code"),
    ("is not supported*", "exists", "a known code"),
    ("is unknown*", "exists", "a known code"),
    ("must be acknowledged", "one_of", "ACKNOWLEDGED"),
];

const LENGTHS: &[PhraseRow] = &[
    (
        "must be a maximum of * characters*",
        "max",
        "at most * characters",
    ),
    (
        "must not be greater than * characters",
        "max",
        "at most * characters",
    ),
    (
        "must not be longer than * characters",
        "max",
        "at most * characters",
    ),
    (
        "may not be greater than * characters",
        "max",
        "at most * characters",
    ),
    (
        "must not exceed * characters",
        "max",
        "at most * characters",
    ),
    (
        "must be at most * characters",
        "max",
        "at most * characters",
    ),
    (
        "must be at least * characters",
        "min",
        "at least * characters",
    ),
    (
        "must be a minimum of * characters",
        "min",
        "at least * characters",
    ),
    (
        "must be exactly as many characters as *",
        "size",
        "as many characters as *",
    ),
    ("must be exactly * characters", "size", "* characters"),
    ("must not have more than * items", "max", "at most * items"),
    ("must have at least * items", "min", "at least * items"),
    ("must contain at least * items", "min", "at least * items"),
    ("must contain at least * item", "min", "at least * item"),
    (
        "must not contain control characters*",
        "control_characters",
        "a text without control characters",
    ),
];

const FORMATS: &[PhraseRow] = &[
    ("must be a date of the form *", "date", "a date written *"),
    ("must be a date written *", "date", "a date written *"),
    (
        "must be in the format yyyy-mm-dd",
        "date",
        "a date written YYYY-MM-DD",
    ),
    ("must be a valid date*", "date", "a date written YYYY-MM-DD"),
    ("must be a date*", "date", "a date written YYYY-MM-DD"),
    ("must be a time written *", "time", "a time written *"),
    ("must be a valid uuid*", "uuid", "a UUID"),
    ("must be a uuid*", "uuid", "a UUID"),
    ("must be a valid email*", "email", "an email address"),
    ("must be an email*", "email", "an email address"),
    (
        "must start with + and hold the country code",
        "telephone",
        "a + followed by 6 to 15 digits",
    ),
    (
        "must be a + followed by *",
        "telephone",
        "a + followed by *",
    ),
    (
        "must be a country code of *",
        "country",
        "a country code of *",
    ),
    (
        "must be a currency code of *",
        "currency",
        "a currency code of *",
    ),
    (
        "must have the form {invoice_no}*",
        "irn_malformed",
        "{invoice_no}*",
    ),
    (
        "must be written {invoice_no}*",
        "irn_malformed",
        "{invoice_no}*",
    ),
    (
        "must begin with an invoice number of *",
        "irn_invoice_no",
        "an invoice number of *",
    ),
    (
        "must hold a service id of *",
        "irn_malformed",
        "a service id of *",
    ),
    (
        "must end with a date of the form *",
        "irn_malformed",
        "a date written * at the end",
    ),
    (
        "must hold the service id of *",
        "irn_service_id_mismatch",
        "the service id of *",
    ),
    (
        "must carry the service id of *",
        "irn_service_id_mismatch",
        "the service id of *",
    ),
    ("must be written *", "format", "*"),
    ("must match the format *", "format", "*"),
    ("must have the form *", "format", "*"),
];

const TYPES: &[PhraseRow] = &[
    (
        "must be a number in a string*",
        "type",
        "a number in a string",
    ),
    ("must be a number*", "type", "a number"),
    ("must be numeric*", "type", "a number"),
    ("must be an integer*", "type", "an integer"),
    ("must be a whole number*", "integer", "a whole number*"),
    ("must be a string*", "type", "a string"),
    ("must be a boolean*", "type", "true or false"),
    ("must be true or false", "type", "true or false"),
    ("must be an object*", "type", "an object"),
    ("must be an array*", "type", "an array"),
];

const SIZES: &[PhraseRow] = &[
    (
        "must be * plus the tax total",
        "sum",
        "* plus the tax total",
    ),
    ("must be the sum of *", "sum", "the sum of *"),
    ("must add up to *", "sum", "items that add up to *"),
    ("must be equal to *", "sum", "*"),
    ("must equal *", "sum", "*"),
    ("must be greater than or equal to *", "min", "at least *"),
    ("must be less than or equal to *", "max", "at most *"),
    ("must be greater than *", "greater_than", "more than *"),
    ("must not be less than *", "min", "at least *"),
    ("must be at least *", "min", "at least *"),
    ("must be a minimum of *", "min", "at least *"),
    ("must not be greater than *", "max", "at most *"),
    ("must not exceed *", "max", "at most *"),
    ("must be at most *", "max", "at most *"),
    ("must be a maximum of *", "max", "at most *"),
    ("is too large", "max", "a smaller number"),
    (
        "must not be before *",
        "after_or_equal",
        "the day of * or a later one",
    ),
    (
        "must be on or after *",
        "after_or_equal",
        "the day of * or a later one",
    ),
    (
        "must be after or equal to *",
        "after_or_equal",
        "the day of * or a later one",
    ),
    (
        "must not be in the future",
        "before_or_equal",
        "today or an earlier day",
    ),
];

const PHRASE_TABLES: [&[PhraseRow]; 6] = [PRESENCE, CHOICES, LENGTHS, FORMATS, TYPES, SIZES];

/// The authority uses Go's validator, which names a violated rule by a tag. Each tag has a sentence here.
const TAG_SENTENCES: [(&str, &str); 13] = [
    ("required", "is required"),
    (
        "oneof",
        "must be one of the values that the authority knows",
    ),
    ("max", "must not be greater than the authority allows"),
    ("min", "must be at least what the authority asks for"),
    ("lte", "must not be greater than the authority allows"),
    ("gte", "must be at least what the authority asks for"),
    ("gt", "must be greater than the authority's limit"),
    (
        "len",
        "must be exactly as many characters as the authority asks for",
    ),
    ("email", "must be a valid email"),
    ("uuid", "must be a valid UUID"),
    ("uuid4", "must be a valid UUID"),
    ("datetime", "must be a valid date"),
    ("numeric", "must be a number"),
];

/// Finds the meaning of a sentence without its field name, such as `must be a number`.
pub(super) fn find_meaning(sentence: &str) -> Option<SentenceMeaning> {
    let sentence = sentence.trim().trim_end_matches('.');
    PHRASE_TABLES
        .iter()
        .flat_map(|table| table.iter())
        .find_map(|(phrase, rule, expected)| {
            let wildcard_text = match_phrase(phrase, sentence)?;
            Some(SentenceMeaning {
                rule,
                expected: expected.replacen('*', wildcard_text, 1),
            })
        })
}

/// Returns the expected value that a sentence names: from a known phrase, else the text after `must be`.
pub(super) fn expected_value(sentence: &str) -> Option<String> {
    let sentence = sentence.trim().trim_end_matches('.');
    let expected = find_meaning(sentence).map(|meaning| meaning.expected);
    expected.or_else(|| sentence.strip_prefix("must be ").map(str::to_owned))
}

/// Returns the sentence for a tag of Go's validator; `None` if the tag is unknown.
pub(super) fn validator_tag_sentence(tag: &str) -> Option<&'static str> {
    TAG_SENTENCES
        .iter()
        .find(|(name, _)| *name == tag)
        .map(|(_, sentence)| *sentence)
}

/// Returns the part of the text at the first `*` of the phrase, empty if the phrase has no `*`. Returns `None` if the
/// text does not match the phrase. A second `*` may only be at the end.
fn match_phrase<'t>(phrase: &str, text: &'t str) -> Option<&'t str> {
    let (before, after) = phrase.split_once('*').unwrap_or((phrase, ""));
    if !text.get(..before.len())?.eq_ignore_ascii_case(before) {
        return None;
    }
    let rest = text.get(before.len()..)?;
    let has_star = before.len() < phrase.len();
    match after.strip_suffix('*') {
        Some(middle) => rest
            .split_once(middle)
            .map(|(wildcard_text, _)| wildcard_text),
        None if !has_star => rest.is_empty().then_some(""),
        None => rest
            .strip_suffix(after)
            .filter(|wildcard_text| after.is_empty() || !wildcard_text.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sentences of the authority, each with the id of the violated rule and the expected value.
    const AUTHORITY_SENTENCES: [(&str, &str, &str); 31] = [
        ("is required", "required", "a value"),
        ("must be a valid UUID", "uuid", "a UUID"),
        (
            "must be a date of the form YYYY-MM-DD",
            "date",
            "a date written YYYY-MM-DD",
        ),
        ("must be a known code", "exists", "a known code"),
        (
            "must be one of PENDING, PARTIAL, PAID, REJECTED",
            "one_of",
            "one of PENDING, PARTIAL, PAID, REJECTED",
        ),
        ("must be a number", "type", "a number"),
        (
            "must be a number in a string",
            "type",
            "a number in a string",
        ),
        ("must be a string", "type", "a string"),
        ("must be an object", "type", "an object"),
        ("must be an array", "type", "an array"),
        ("must contain at least 1 item", "min", "at least 1 item"),
        ("must not be less than 0", "min", "at least 0"),
        ("must be greater than 0", "greater_than", "more than 0"),
        ("must not be greater than 100", "max", "at most 100"),
        (
            "must be a maximum of 3 characters",
            "max",
            "at most 3 characters",
        ),
        (
            "must be a maximum of 3 characters in length",
            "max",
            "at most 3 characters",
        ),
        ("is too large", "max", "a smaller number"),
        (
            "must not be before issue_date",
            "after_or_equal",
            "the day of issue_date or a later one",
        ),
        ("must be a valid email", "email", "an email address"),
        (
            "must start with + and hold the country code",
            "telephone",
            "a + followed by 6 to 15 digits",
        ),
        (
            "must be a country code of 2 letters",
            "country",
            "a country code of 2 letters",
        ),
        (
            "must be the sum of its tax subtotals",
            "sum",
            "the sum of its tax subtotals",
        ),
        ("must add up to a.b", "sum", "items that add up to a.b"),
        (
            "must be tax_exclusive_amount plus the tax total",
            "sum",
            "tax_exclusive_amount plus the tax total",
        ),
        (
            "must not be less than tax_exclusive_amount",
            "min",
            "at least tax_exclusive_amount",
        ),
        (
            "must have the form {invoice_no}-{service_id}-{YYYYMMDD}",
            "irn_malformed",
            "{invoice_no}-{service_id}-{YYYYMMDD}",
        ),
        (
            "must begin with an invoice number of letters and digits only",
            "irn_invoice_no",
            "an invoice number of letters and digits only",
        ),
        (
            "must hold a service id of 8 hexadecimal characters",
            "irn_malformed",
            "a service id of 8 hexadecimal characters",
        ),
        (
            "must end with a date of the form YYYYMMDD",
            "irn_malformed",
            "a date written YYYYMMDD at the end",
        ),
        (
            "must hold the service id of the business",
            "irn_service_id_mismatch",
            "the service id of the business",
        ),
        ("must be ACKNOWLEDGED", "one_of", "ACKNOWLEDGED"),
    ];

    #[test]
    fn every_sentence_of_the_authority_has_a_rule_and_an_expected_value() {
        for (sentence, rule, expected) in AUTHORITY_SENTENCES {
            let expected = SentenceMeaning {
                rule,
                expected: expected.to_owned(),
            };
            assert_eq!(find_meaning(sentence), Some(expected), "{sentence}");
        }
    }

    #[test]
    fn common_sentences_of_validators_are_understood_in_any_case() {
        for (sentence, rule) in [
            ("Must be one of: A, B.", "one_of"),
            ("cannot be blank", "required"),
            ("must not exceed 50 characters", "max"),
            ("must not exceed 50", "max"),
            ("must be less than or equal to 7", "max"),
            ("must be at least 3 characters", "min"),
            ("must be at least 3", "min"),
            ("must be a date", "date"),
            ("is unknown to us", "exists"),
        ] {
            assert_eq!(
                find_meaning(sentence).map(|meaning| meaning.rule),
                Some(rule),
                "{sentence}"
            );
        }
        for (tag, sentence) in TAG_SENTENCES {
            assert!(find_meaning(sentence).is_some(), "{tag}");
        }
    }

    #[test]
    fn an_unknown_sentence_has_no_meaning_but_may_have_an_expected_value() {
        for sentence in [
            "",
            "*",
            "is odd",
            "must",
            "must be",
            "é",
            "mu\u{301}st be one of",
            "must be one of",
        ] {
            assert_eq!(find_meaning(sentence), None, "{sentence}");
        }
        assert_eq!(expected_value("must be blue.").as_deref(), Some("blue"));
        assert_eq!(expected_value("is odd"), None);
    }
}
