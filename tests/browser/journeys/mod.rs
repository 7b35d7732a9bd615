//! What people come for, each from the sign-in to the end, by the words on the pages.

mod accounts;
mod operators;
mod typed_text;
