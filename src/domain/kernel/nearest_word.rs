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

/// Returns the known word to which `written` has the fewest typos, ignoring case and punctuation. Returns `None` if no
/// word is near enough, or if several are equally near.
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
        assert_eq!(nearest_word("fint", ["find", "font"]), None);
        assert_eq!(nearest_word("font", ["find", "find"]), None);
        assert_eq!(nearest_word("fint", ["find", "find"]), Some("find"));
    }

    #[test]
    fn a_guess_is_a_question() {
        assert_eq!(suggestion("stauts", ["status"]), " (did you mean status?)");
        assert_eq!(suggestion("colour", ["status"]), "");
    }
}
