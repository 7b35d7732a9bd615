# Short names for the commands of CONTRIBUTING.md; each line is the whole command.

# List the recipes.
default:
    @just --list --unsorted

# Start the service with its embedded database and simulator.
run *args:
    cargo run --release -- {{args}}

# Check and test everything, on SQLite and PostgreSQL.
test *args:
    scripts/test {{args}}

# Lint, and run the unit tests on SQLite alone.
test-fast *args:
    scripts/test --fast {{args}}

# Format the code.
fmt:
    cargo fmt --all

# Lint all targets; warnings are errors.
lint:
    cargo clippy --workspace --all-targets --locked -- -D warnings

# Run the fuzz targets: `just fuzz 600 json_reader`.
fuzz *args:
    scripts/fuzz {{args}}

# Measure what the service does per second, beside what bounds it.
bench *args:
    cargo bench --bench throughput {{args}}

# Rewrite the pages that are generated from the code.
docs:
    EINVOICE_WRITE_DOCS=1 cargo test -p einvoice -p authority_client --lib --test api -- openapi::fields answers_page app::explain import_corpus incident::document_tests
