//! Decides whether two refusals have the same reason. The authority's sentences contain data of the document, so they
//! are compared without this data.

/// The replacement for words that differ between documents.
const OMITTED: &str = "…";

/// Returns the sentence of a refusal without the words that contain a digit, such as numbers, dates and IRNs. What is
/// left is the same for all documents that are refused for this reason.
pub fn reason_pattern(sentence: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in sentence.split_whitespace() {
        let has_digit = word.chars().any(|letter| letter.is_ascii_digit());
        match (has_digit, words.last()) {
            (true, Some(&OMITTED)) => {}
            (true, _) => words.push(OMITTED),
            (false, _) => words.push(word),
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_between_documents_is_left_out() {
        for (sentence, pattern) in [
            ("the TIN is not known", "the TIN is not known"),
            (
                "invoice INV7-94AD90FB-20261121 is not unique",
                "invoice … is not unique",
            ),
            (
                "invoice INV8-94AD90FB-20261122 is not unique",
                "invoice … is not unique",
            ),
            ("the total 10.00 11.50 differs", "the total … differs"),
            ("  a   b ", "a b"),
            ("", ""),
        ] {
            assert_eq!(reason_pattern(sentence), pattern);
        }
    }
}
