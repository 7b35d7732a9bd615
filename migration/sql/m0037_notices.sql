-- What people are to be told by mail. A cause writes a notice in its own commit; a while later the notices of one scope and
-- topic are gathered into one mail for each person, and are deleted with that.

CREATE TABLE notices (
    id varchar NOT NULL,
    -- Whom it is for: taxpayer/7 is all people of that account with enough rights, the others are one person each:
    -- contact/7/9, integrator/3, operator/1; sign-in is for who lost a password, with the email in `about`.
    scope varchar NOT NULL,
    topic varchar NOT NULL,
    kind varchar NOT NULL,
    -- The thing that it is about, such as an invoice number, and the reason.
    about text NOT NULL,
    detail text NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX notices_gathered ON notices (scope, topic, at, kind);

-- When a topic was last told, so that the next mail about it waits for a while.
CREATE TABLE told_topics (
    scope varchar NOT NULL,
    topic varchar NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (scope, topic)
);

-- The runs whose near deadline was told.
CREATE TABLE told_deadlines (
    run_id varchar NOT NULL,
    deadline_at bigint NOT NULL,
    PRIMARY KEY (run_id)
);
CREATE INDEX told_deadlines_by_deadline_at ON told_deadlines (deadline_at);
-- Finds the runs that stand still shortly before their deadline, of all taxpayers.
CREATE INDEX pipeline_runs_by_deadline ON pipeline_runs (deadline_at)
    WHERE state IN ('waiting', 'paused', 'refused');

-- The topics about which a person wants no mails until a time. A topic that is not here is told.
CREATE TABLE mail_choices (
    -- contact/7/9 or integrator/3.
    person varchar NOT NULL,
    topic varchar NOT NULL,
    until bigint NOT NULL,
    PRIMARY KEY (person, topic)
);

-- The address of an account's chat, where all that its people are told is posted, too.
CREATE TABLE chat_hooks (
    taxpayer_id bigint NOT NULL,
    -- Sealed with the deployment's encryption key: whoever knows it may post there.
    url text NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (taxpayer_id)
);

CREATE TABLE mails (
    -- Also the id of the message, so that a mail that is sent again after a crash is known to its receiver.
    id varchar NOT NULL,
    recipient text NOT NULL,
    topic varchar NOT NULL,
    subject text NOT NULL,
    body text NOT NULL,
    html text NOT NULL,
    -- The address with which the recipient ends such mails. Null: these do not end.
    unsubscribe text,
    -- The person who chooses a password with the one-time link in the mail. The link is made when the mail is sent, and only
    -- its hash is stored. Null: there is no link.
    link_for varchar,
    -- waiting, sent or failed.
    state varchar NOT NULL,
    attempts integer NOT NULL,
    next_attempt_at bigint NOT NULL,
    last_error text,
    created_at bigint NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX mails_waiting ON mails (next_attempt_at) WHERE state = 'waiting';
CREATE INDEX mails_by_created_at ON mails (created_at);
CREATE INDEX mails_with_links ON mails (recipient, created_at) WHERE link_for IS NOT NULL;
