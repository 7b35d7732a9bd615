//! Concepts that all other modules of the domain use, such as ids, codes, faults and refusals.
//!
//! | File | Content |
//! |---|---|
//! | `audit` | the audit log of security changes and operator actions |
//! | `codes` | enumerations of the API contract, parsed without regard to case |
//! | `crash` | counts of the crashes of a piece of work, and when it is isolated or put aside |
//! | `digest` | digests of documents |
//! | `fault` | faults of request fields: path of the field, stable id of a rule, and message |
//! | `field_rule` | the rules that a field can break |
//! | `formula_mark` | the apostrophe that keeps spreadsheets from computing texts that look like formulas |
//! | `ids` | identifiers, which stay below 2^53 |
//! | `invisible` | characters that nobody can see, or that change the order in which other characters are read |
//! | `nearest_word` | guesses the known word that a caller meant by an unknown one: the name of a field, of a query parameter or of an event |
//! | `refusal` | the reasons for refusing a command or a query, worded for the caller (docs/contract.md, "Errors") |
//! | `tracked` | a value that remembers whether it was changed since it was loaded, so that only changed values are stored |
//! | `upstream` | the causes for which calls to the authority fail, and the party to blame, in words that pages, responses and metrics share |

pub mod audit;
pub mod codes;
pub mod crash;
pub mod digest;
pub mod fault;
pub mod field_rule;
pub mod formula_mark;
pub mod ids;
pub mod invisible;
pub mod nearest_word;
pub mod refusal;
pub mod tracked;
pub mod upstream;
