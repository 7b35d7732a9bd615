//! Guesses the known word that a caller meant by an unknown one: the name of a field, of a query parameter or of an
//! event. There is no guess if two words are equally near, since a wrong guess costs more time than none.

use strsim::osa_distance;

/// The maximum length of a word, in bytes. There is no guess for a longer word.
const WORD_BYTES_MAX: usize = 40;
/// The minimum number of letters of a word in which one typo is accepted. Shorter words may differ in case and
/// punctuation only.
const ONE_TYPO_LETTERS_MIN: usize = 4;
/// The minimum number of letters of a word in which two typos are accepted.
const TWO_TYPOS_LETTERS_MIN: usize = 8;
/// The words that a field of one request may have at its end where a field of another request has none.
const SIBLING_ENDINGS: [&str; 3] = ["code", "no", "id"];

/// Returns the known word to which `written` has the fewest typos, ignoring case and punctuation. Returns `None` if no
/// word is near enough, or if several are equally near. Two typos and another number of parts make another word:
/// `invoice_no` is not `invoices`.
pub fn nearest_word<'w>(
    written: &str,
    known: impl IntoIterator<Item = &'w str>,
) -> Option<&'w str> {
    if written.len() > WORD_BYTES_MAX {
        return None;
    }
    let wanted = fold_to_letters_and_digits(written);
    let letters = wanted.chars().count();
    if letters == 0 {
        return None;
    }
    let most = typos_max(letters);
    let mut best: Option<(usize, &str)> = None;
    let mut is_alone = false;
    for word in known {
        let folded = fold_to_letters_and_digits(word);
        if folded.chars().count().abs_diff(letters) > most {
            continue;
        }
        let distance = osa_distance(&folded, &wanted);
        if distance > 1 && part_count(word) != part_count(written) {
            continue;
        }
        match best {
            _ if distance > most => {}
            Some((least, _)) if distance > least => {}
            Some((least, first)) if distance == least => is_alone &= first == word,
            _ => {
                best = Some((distance, word));
                is_alone = true;
            }
        }
    }
    best.filter(|_| is_alone).map(|(_, word)| word)
}

/// Returns the words `(did you mean …?)` for the nearest known word, with a space before them; an empty text if none is
/// near.
pub fn suggestion<'w>(written: &str, known: impl IntoIterator<Item = &'w str>) -> String {
    nearest_word(written, known).map_or_else(String::new, |word| format!(" (did you mean {word}?)"))
}

/// True if two requests may call the same thing by these names: one is the other with one more word, any word at its
/// beginning or a word such as `code` at its end.
pub fn are_sibling_names(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() < other.len() {
        (one, other)
    } else {
        (other, one)
    };
    let before = long
        .strip_suffix(short)
        .and_then(|rest| rest.strip_suffix('_'));
    let after = long
        .strip_prefix(short)
        .and_then(|rest| rest.strip_prefix('_'));
    let has_word_before = before.is_some_and(|word| !word.is_empty() && !word.contains('_'));
    let has_ending = after.is_some_and(|word| SIBLING_ENDINGS.contains(&word));
    !short.is_empty() && long.len() <= WORD_BYTES_MAX && (has_word_before || has_ending)
}

/// Returns the number of parts of a word between which there is punctuation.
fn part_count(word: &str) -> usize {
    let parts = word.split(|letter: char| !letter.is_alphanumeric());
    parts.filter(|part| !part.is_empty()).count()
}

fn typos_max(letters: usize) -> usize {
    match letters {
        TWO_TYPOS_LETTERS_MIN.. => 2,
        ONE_TYPO_LETTERS_MIN.. => 1,
        _ => 0,
    }
}

fn fold_to_letters_and_digits(word: &str) -> String {
    word.chars()
        .filter(|letter| letter.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_near_word_is_guessed_and_of_two_none() {
        let known = [
            "customer",
            "customer_no",
            "status",
            "due_date",
            "due_before",
            "irn",
            "invoice.created",
            "date_from",
            "date_to",
        ];
        for (written, meant) in [
            ("custmer", Some("customer")),
            ("Customer", Some("customer")),
            ("customerNo", Some("customer_no")),
            ("stauts", Some("status")),
            ("DUE-DATE", Some("due_date")),
            ("duedat", Some("due_date")),
            ("IRN", Some("irn")),
            ("invoice.create", Some("invoice.created")),
            ("in", None),
            ("irm", None),
            ("state", None),
            ("colour", None),
            ("", None),
            ("__", None),
            ("date_form", Some("date_from")),
            (&"customer".repeat(9), None),
        ] {
            assert_eq!(nearest_word(written, known), meant, "{written}");
        }
        for (written, known, meant) in [
            ("invoice_no", "invoices", None),
            ("invoiceNo", "invoice_no", Some("invoice_no")),
            ("duedate", "due_date", Some("due_date")),
            ("invoise_not", "invoice_no", Some("invoice_no")),
        ] {
            assert_eq!(nearest_word(written, [known]), meant, "{written}");
        }
        assert_eq!(nearest_word("fint", ["find", "font"]), None);
        assert_eq!(nearest_word("font", ["find", "find"]), None);
        assert_eq!(nearest_word("fint", ["find", "find"]), Some("find"));
    }

    #[test]
    fn sibling_names_differ_by_one_word_at_the_beginning_or_by_a_usual_one_at_the_end() {
        for (one, other, are_siblings) in [
            ("invoice_lines", "lines", true),
            ("invoice_type_code", "invoice_type", true),
            ("url", "webhook_url", true),
            ("irn", "supplier_irn", true),
            ("tin", "tin_no", true),
            ("email", "customer_email", true),
            ("invoice_no", "invoices", false),
            ("invoice_no", "invoice", true),
            ("customer_name", "customer", false),
            ("due_date", "issue_date", false),
            ("baseline", "line", false),
            ("my_own_url", "url", false),
            ("_url", "url", false),
            ("url_", "url", false),
            ("url", "url", false),
            ("", "", false),
            ("_", "", false),
            (&format!("{}_url", "x".repeat(40)), "url", false),
        ] {
            for (one, other) in [(one, other), (other, one)] {
                assert_eq!(are_sibling_names(one, other), are_siblings, "{one} {other}");
            }
        }
    }

    #[test]
    fn a_guess_is_a_question() {
        assert_eq!(suggestion("stauts", ["status"]), " (did you mean status?)");
        assert_eq!(suggestion("colour", ["status"]), "");
    }
}
