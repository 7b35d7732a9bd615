//! The command `einvoice`.

fn main() {}
